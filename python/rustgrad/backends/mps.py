"""Apple's Metal by the name of PyTorch's device: here it is reached as `gpu`, so the answer is no."""


def is_available() -> bool:
    """False: use `rustgrad.gpu.is_available()`."""
    return False


def is_built() -> bool:
    """False: the device is called gpu."""
    return False
