"""Intel's MKL, which is not used: matrix products and convolutions are rustgrad's own."""

from ._library import Verbose as verbose

VERBOSE_OFF: int = 0
VERBOSE_ON: int = 1
enabled: bool = False
deterministic: bool = True
allow_tf32: bool = False

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "allow_tf32", "deterministic", "enabled", "is_available", "verbose"]


def is_available() -> bool:
    """False: the library is not used."""
    return False
