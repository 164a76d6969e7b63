"""Type aliases for arguments. Only type checkers read this module: annotations are text at run time."""

from typing import TypeAlias

from ._C import device
from .autograd.graph import GradientEdge

__all__ = ["DeviceLike", "GradientEdge", "Number"]

# A bool is an int.
Number: TypeAlias = int | float | complex
DeviceLike: TypeAlias = device | str | int
