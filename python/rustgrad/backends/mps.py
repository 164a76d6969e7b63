"""PyTorch's Metal device. Not available under this name: Metal is used through `gpu`."""


def is_available() -> bool:
    """False: use `rustgrad.gpu.is_available()`."""
    return False


def is_built() -> bool:
    """False: the device is called gpu."""
    return False
