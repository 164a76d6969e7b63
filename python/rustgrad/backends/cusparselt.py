"""cuSPARSELt, which is not available."""

from __future__ import annotations

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available() -> bool:
    """False: there is no CUDA."""
    return False


def version() -> int | None:
    """None: there is no cuSPARSELt."""
    return None


def get_max_alg_id() -> int | None:
    """None: there is no cuSPARSELt."""
    return None
