"""`rustgrad.distributed.nn`: collectives that gradients go through."""

from . import functional
from .functional import *  # noqa: F403

__all__ = functional.__all__


def __dir__() -> list[str]:
    return __all__
