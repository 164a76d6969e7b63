"""The legacy typed constructors (`FloatTensor`, `LongTensor`, ...) and the default tensor type that goes with them.

They are classes only in name: calling one creates a plain `Tensor` of its dtype, and `isinstance` checks
dtype and device.
"""

from __future__ import annotations

import warnings

from . import _C, _conversions
from ._C import Tensor
from ._conversions import legacy

_KINDS = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
    "ComplexFloatTensor": "complex64",
    "ComplexDoubleTensor": "complex128",
}

__all__ = [*_KINDS, "set_default_tensor_type"]


def _cuda_is_gpu():
    from . import cuda

    return cuda._stands_for_gpu


class _TypedMeta(type):
    def __new__(cls, name, bases, body):
        if bases:
            raise TypeError(f"type '{bases[0]}' is not an acceptable base type")
        return super().__new__(cls, name, bases, body)

    def __call__(cls, *args, **kwargs):
        if cls._device == "cuda" and not _cuda_is_gpu():
            raise TypeError(
                f"type {cls} not available. There is no CUDA in rustgrad; use device='gpu': any vendor's GPU will do."
            )
        return legacy(cls.dtype, cls._device, args, kwargs)

    def __instancecheck__(cls, instance):
        if not isinstance(instance, Tensor) or instance.dtype != cls.dtype:
            return False
        return instance.is_cuda if cls._device == "cuda" else instance.device.type == cls._device

    def __repr__(cls):
        return f"<class '{cls}'>"

    def __str__(cls):
        return f"torch.{'' if cls._device == 'cpu' else cls._device + '.'}{cls.__name__}"


def make_types(device: str) -> dict[str, type]:
    """name -> typed constructor for a device kind."""
    types = {}
    for name, dtype in _KINDS.items():
        body = {
            "dtype": getattr(_C, dtype),
            "_device": device,
            "__doc__": f"Makes a {dtype} tensor on the {device} from sizes, a sequence or an array.",
            "__module__": "rustgrad" if device == "cpu" else f"rustgrad.{device}",
        }
        types[name] = _TypedMeta(name, (), body)
    return types


globals().update(make_types("cpu"))


def _find(name):
    """The typed constructor of a name such as `torch.FloatTensor` or `rustgrad.gpu.FloatTensor`."""
    package, _, kind = name.rpartition(".")
    root, _, device = package.partition(".")
    if root not in ("torch", "rustgrad", "") or kind not in _KINDS or device not in ("", "gpu", "cuda"):
        raise TypeError(f"invalid type object: {name!r}; expected one such as 'torch.FloatTensor'")
    return make_types(device or "cpu")[kind]


def set_default_tensor_type(t: type | str) -> None:
    """Sets default dtype and device by a legacy tensor type or its name ("torch.FloatTensor").

    Raises:
        TypeError: an unknown type, or one that is not floating point.
    """
    kind = _find(t) if isinstance(t, str) else t
    if not isinstance(kind, _TypedMeta):
        raise TypeError(f"invalid type object: {t!r}; expected one such as 'torch.FloatTensor'")
    if not kind.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    _C.set_default_dtype(kind.dtype)
    _C.set_default_device(kind._device)
    _conversions.legacy_home = kind._device
