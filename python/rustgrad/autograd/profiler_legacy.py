"""The former profiler: `autograd.profiler.profile` under its oldest name."""

from ..profiler._profile import legacy_profile as profile

__all__ = ["profile"]


def __dir__() -> list[str]:
    return __all__
