"""Communication hooks of `DistributedDataParallel`: functions that reduce a bucket of gradients."""

from . import default_hooks as default_hooks
from . import post_localSGD_hook as post_localSGD_hook
from . import powerSGD_hook as powerSGD_hook

__all__ = ["default_hooks", "post_localSGD_hook", "powerSGD_hook"]


def __dir__() -> list[str]:
    return __all__
