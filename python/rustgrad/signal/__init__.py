"""`rustgrad.signal`: windows for filters and spectra."""

from . import windows as windows

__all__ = ["windows"]


def __dir__() -> list[str]:
    return __all__
