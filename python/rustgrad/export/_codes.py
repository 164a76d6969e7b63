"""The numbers and names that files of exported programs have for dtypes, layouts and the like."""

from __future__ import annotations

from typing import Any

from .. import _C, _formats

__all__ = ["DTYPES", "DTYPE_CODES", "LAYOUTS", "MEMORY_FORMATS", "OPERATORS"]

_NAMES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64", 9: "complex32",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2",
    31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
DTYPES: dict[int, Any] = {code: getattr(_C, name) for code, name in _NAMES.items() if hasattr(_C, name)}
DTYPE_CODES: dict[Any, int] = {dtype: code for code, dtype in DTYPES.items()}
LAYOUTS: dict[int, Any] = {7: _formats.strided}
MEMORY_FORMATS: dict[int, Any] = {
    1: _formats.contiguous_format,
    2: _formats.channels_last,
    3: _formats.channels_last_3d,
    4: _formats.preserve_format,
}
# Functions of numbers that graphs call beside ops.
OPERATORS = frozenset(
    "add sub mul floordiv truediv mod neg pos pow eq ne lt le gt ge and_ or_ xor not_ getitem lshift rshift".split()
)
