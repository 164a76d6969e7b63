"""Whether mixed precision on "cuda" is out of the question."""

from __future__ import annotations

from .. import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no "cuda" device; under `python -m rustgrad`, no GPU."""
    return not is_available()


def __dir__() -> list[str]:
    return __all__
