"""`rustgrad.nn`: modules, parameters, functions, initialisation."""

from __future__ import annotations

from typing import Any

from .._absent import getattr_of
from . import attention, functional, grad, init, modules, parallel, parameter, utils
from .modules import *  # noqa: F403
from .modules import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *modules.__all__,
]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The keyword arguments for `empty` and the like among those of a module's constructor: `device`, `dtype`, `memory_format`.

    `kwargs["factory_kwargs"]` holds those whose names the constructor uses otherwise.

    Raises:
        TypeError: there are others, or one is given twice.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - names - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(names & kwargs.keys()):
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    return result


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
