"""Communication hooks of `DistributedDataParallel`: functions that reduce a bucket of gradients."""

from . import default_hooks as default_hooks

__all__ = ["default_hooks"]


def __dir__() -> list[str]:
    return __all__
