"""The fast path of PyTorch's `MultiheadAttention` and encoder layers: a switch that is stored, without effect."""

_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` set, True at first."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Stores the switch: there is one path."""
    global _enabled
    _enabled = value
