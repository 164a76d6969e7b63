"""`rustgrad.nn`: modules, parameters, functions, initialisation."""

from .._absent import getattr_of
from . import attention, functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules import Module
from .parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
    *modules.__all__,
]


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
