"""The place where programs look for the class of compiled modules."""

from ..compiler import OptimizedModule

__all__ = ["OptimizedModule"]
