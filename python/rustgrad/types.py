"""`rustgrad.types`: the names that annotations use."""

import builtins
import os
from collections.abc import Sequence
from typing import IO

from . import _C
from ._C import Size, Tensor, device, dtype
from ._checks import SymBool, SymFloat, SymInt
from ._formats import layout
from .storage import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _complex, _str, _bytes = (
    builtins.int,
    builtins.float,
    builtins.bool,
    builtins.complex,
    builtins.str,
    builtins.bytes,
)
_dtype, _device, _layout = dtype, device, layout
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
_Generator = _C.Generator
Number = int | float | bool
_Number = (int, float, bool)
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
# Numbers, or what stands for them where shapes are symbols.
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType = SymInt | SymFloat | SymBool
IntLikeType = int | SymInt
FloatLikeType = float | SymFloat
BoolLikeType = bool | SymBool


def __dir__() -> list[str]:
    return __all__
