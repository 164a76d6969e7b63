"""`rustgrad.distributed.elastic.multiprocessing`: names that libraries import."""

from . import errors as errors

__all__ = ["errors"]


def __dir__() -> list[str]:
    return __all__
