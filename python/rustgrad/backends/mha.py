"""The switch of PyTorch's fused path of attention layers: stored, without effect."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` set; True at first."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Stored, without effect: there is one path."""
    global _enabled
    _enabled = value
