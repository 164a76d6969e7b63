"""The place where programs look for the class of compiled modules."""

from .._absent import getattr_of
from ..compiler import OptimizedModule

__all__ = ["OptimizedModule"]


__getattr__ = getattr_of(__name__)
