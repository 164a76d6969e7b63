"""Settings of cuDNN, which is not available: stored, without effect."""

enabled = False
benchmark = False
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """False: there is no CUDA."""
    return False


def version() -> int | None:
    """None: there is no cuDNN."""
    return None
