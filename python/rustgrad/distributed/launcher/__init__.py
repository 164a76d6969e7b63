"""`rustgrad.distributed.launcher`: a function in several processes, as `distributed.run` starts a script."""

from .api import LaunchConfig as LaunchConfig
from .api import elastic_launch as elastic_launch

__all__ = ["LaunchConfig", "elastic_launch"]


def __dir__() -> list[str]:
    return __all__
