"""`finfo` and `iinfo`: the numeric limits of a dtype, as constants of IEEE 754 and two's complement."""

from __future__ import annotations

from . import _C
from ._C import dtype

__all__ = ["finfo", "iinfo"]

# name -> (bits, bits of the mantissa, smallest exponent, largest exponent, decimal digits)
_FLOATS = {
    "float16": (16, 10, -14, 15, 3),
    "bfloat16": (16, 7, -126, 127, 2),
    "float32": (32, 23, -126, 127, 6),
    "float64": (64, 52, -1022, 1023, 15),
    "float8_e4m3fn": (8, 3, -6, 8, 0),
    "float8_e4m3fnuz": (8, 3, -7, 7, 0),
    "float8_e5m2": (8, 2, -14, 15, 0),
    "float8_e5m2fnuz": (8, 2, -15, 15, 0),
    "float8_e8m0fnu": (8, 0, -127, 127, 0),
}
# e4m3fn has one NaN where the others have a binade of infinities and NaNs, so its greatest number is a step short of full;
# e8m0fnu holds powers of two alone, without a sign.
_GREATEST = {"float8_e4m3fn": 448.0}
_LEAST = {"float8_e8m0fnu": 2.0**-127}
_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_INTS = {f"{sign}int{bits}": (bits, not sign) for sign in ("", "u") for bits in (8, 16, 32, 64)}
_INTS |= {"quint8": (8, False), "qint8": (8, True), "qint32": (32, True)}


def _name(dtype):
    return str(dtype).rpartition(".")[2]


class finfo:
    """Limits of a floating point dtype: `bits`, `eps`, `max`, `min`, `tiny` = `smallest_normal`, `resolution`.

    Args:
        type (dtype, optional): the default dtype if omitted; a complex dtype means its components.

    Raises:
        TypeError: not a floating point dtype.
    """

    def __init__(self, type: dtype | None = None) -> None:
        if type is None:
            type = _C.get_default_dtype()
        if not isinstance(type, _C.dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
        name = _COMPLEX.get(_name(type), _name(type))
        if name not in _FLOATS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        bits, mantissa, low, high, digits = _FLOATS[name]
        self.dtype = name
        self.bits = bits
        self.eps: float = 2.0**-mantissa
        self.max: float = _GREATEST.get(name, (2.0 - self.eps) * 2.0**high)
        self.min: float = _LEAST.get(name, -self.max)
        self.tiny: float = 2.0**low
        self.smallest_normal: float = self.tiny
        self.resolution: float = float(f"1e-{digits}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return "finfo(" + ", ".join(f"{f}={getattr(self, f):g}" for f in fields) + f", dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: `bits`, `max`, `min`.

    Raises:
        TypeError: not an integer dtype.
    """

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, _C.dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
        name = _name(type)
        if name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if name not in _INTS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        self.dtype = name
        self.bits: int
        self.bits, signed = _INTS[name]
        self.max: int = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
