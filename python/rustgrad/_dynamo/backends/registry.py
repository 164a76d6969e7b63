"""Backends by their names."""

from ..._absent import getattr_of
from ...compiler._backends import (
    list_backends,
    lookup_backend,
    register_backend,
    register_debug_backend,
    register_experimental_backend,
)

__all__ = [
    "list_backends",
    "lookup_backend",
    "register_backend",
    "register_debug_backend",
    "register_experimental_backend",
]


__getattr__ = getattr_of(__name__)
