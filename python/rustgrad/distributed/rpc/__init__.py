"""`rustgrad.distributed.rpc`: names that libraries import; processes do not call each other here."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._absent import getattr_of

__all__ = ["RRef", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]


def is_available() -> bool:
    """False."""
    return False


def _refusing(name):
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"distributed.rpc.{name}: processes do not call each other here. Hint: use the standard library's multiprocessing."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "NotImplementedError: processes do not call each other here."
    return function


class RRef:
    """A value of another process, for tests of libraries whether something is one: nothing is."""

    __new__ = _refusing("RRef")


PyRRef = RRef
init_rpc, remote, rpc_async, rpc_sync, shutdown = map(
    _refusing, ("init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown")
)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
