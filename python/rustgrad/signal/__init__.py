"""`rustgrad.signal`: windows for filters and spectra."""

from . import windows as windows

__all__ = ["windows"]
