"""Apple's Metal by the name of PyTorch's device: here it is reached as `gpu`, so the answer is no."""


def is_available():
    """False: use `rustgrad.gpu.is_available()`."""
    return False


def is_built():
    """False: the device is called gpu."""
    return False
