"""The typed constructors of sparse tensors (`sparse.FloatTensor`, ...): classes in name, which make `sparse_coo` tensors."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from ._construct import empty_coo, sparse_coo_tensor
from ._tensor import CooTensor

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]


class _TypedMeta(type):
    dtype: _C.dtype

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if bases:
            raise TypeError(f"type '{bases[0]}' is not an acceptable base type")
        return super().__new__(cls, name, bases, body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return made(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, CooTensor) and instance.dtype == cls.dtype and instance.is_cpu

    def __repr__(cls) -> str:
        return f"<class '{cls}'>"

    def __str__(cls) -> str:
        return f"torch.sparse.{cls.__name__}"


def made(dtype, args, kwargs):
    """What the legacy constructor of a dtype makes of its arguments."""
    device = kwargs.pop("device", None)
    args = (*args, *(kwargs.pop(name) for name in ("indices", "values", "size") if name in kwargs))
    tensors = [a for a in args if isinstance(a, Tensor)]
    if not kwargs and len(tensors) == 2 and all(isinstance(a, Tensor) for a in args[:2]) and len(args) < 4:
        size = args[2] if len(args) == 3 else None
        if size is None or isinstance(size, (tuple, list)):
            if tensors[0].dtype != _C.int64:
                raise RuntimeError("indices must be an int64 tensor")
            return sparse_coo_tensor(*args, device=device)
    size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    if not kwargs and not tensors and all(hasattr(n, "__index__") for n in size):
        return empty_coo(tuple(n.__index__() for n in size) or (0,), dtype, device)
    given = ", ".join(type(a).__name__ for a in args)
    raise TypeError(
        f"new() received an invalid combination of arguments - got ({given}), but expected one of: (), (indices, values), "
        "(indices, values, size), (size)"
    )


def _type(name, dtype):
    text = f"Makes a `sparse_coo` tensor of indices and values, or a {dtype._name} one of a size without elements."
    return _TypedMeta(name, (), {"dtype": dtype, "__doc__": text, "__module__": "rustgrad.sparse"})


FloatTensor: Any = _type("FloatTensor", _C.float32)
DoubleTensor: Any = _type("DoubleTensor", _C.float64)
HalfTensor: Any = _type("HalfTensor", _C.float16)
BFloat16Tensor: Any = _type("BFloat16Tensor", _C.bfloat16)
ByteTensor: Any = _type("ByteTensor", _C.uint8)
CharTensor: Any = _type("CharTensor", _C.int8)
ShortTensor: Any = _type("ShortTensor", _C.int16)
IntTensor: Any = _type("IntTensor", _C.int32)
LongTensor: Any = _type("LongTensor", _C.int64)
