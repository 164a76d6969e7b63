"""`rustgrad.distributed.elastic`: names that libraries import; nothing starts workers again here."""

from . import multiprocessing as multiprocessing

__all__ = ["multiprocessing"]


def __dir__() -> list[str]:
    return __all__
