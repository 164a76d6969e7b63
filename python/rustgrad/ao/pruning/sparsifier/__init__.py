"""Which weights become zero."""

from ...._absent import getattr_of

__all__: list[str] = []

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
