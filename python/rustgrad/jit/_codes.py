"""The numbers by which TorchScript writes dtypes, layouts and memory formats, and losses their reduction."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._formats import strided

__all__ = ["code_of", "dtype_of", "format_of", "layout_of"]

_DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
           "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16")  # fmt: skip
_LATER = {27: "uint16", 28: "uint32", 29: "uint64"}
_dtypes = {code: vars(_C)[name] for code, name in [*enumerate(_DTYPES), *_LATER.items()] if name in vars(_C)}
_codes = {d: code for code, d in _dtypes.items()}
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


def dtype_of(code: Any) -> Any:
    """The dtype of a number; what is no number is returned as it is."""
    if type(code) is not int:
        return code
    try:
        return _dtypes[code]
    except KeyError:
        raise NotImplementedError(
            f"jit: the dtype {code} does not exist here; expected one of {sorted(_dtypes)}"
        ) from None


def layout_of(code: Any) -> Any:
    """The layout of a number: only strided tensors are made by code in archives."""
    if code in (None, 0) or code is strided:
        return None
    raise NotImplementedError(f"jit: code that makes tensors of the layout {code}; expected 0, strided")


def format_of(code: Any) -> Any:
    """The memory format of a number; what is no number is returned as it is."""
    import rustgrad

    return getattr(rustgrad, _FORMATS[code]) if type(code) is int else code


def code_of(value: Any) -> int | None:
    """The number of a dtype, a layout or a memory format; None for anything else."""
    if isinstance(value, _C.dtype):
        return _codes.get(value)
    if value is strided:
        return 0
    kind = type(value).__name__
    if kind == "memory_format":
        return _FORMATS.index(str(value).rpartition(".")[2])
    return None
