"""Conversions of dtype and device (`type`, `gpu`; others are in the extension), what a tensor answers about quantisation that is not
quantised, and the legacy constructors `Tensor(2, 3)`, `new`.
"""

import warnings

from . import _C
from ._C import Size, Tensor, ops
from ._C import dtype as _dtype
from .storage import TypedStorage, UntypedStorage

DTYPES = {
    "float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16, "int": _C.int32,
    "long": _C.int64, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "chalf": _C.complex32, "cfloat": _C.complex64, "cdouble": _C.complex128,
}  # fmt: skip


class Methods:
    """A part of the body of `Tensor`."""

    # --- dtype and device ------------------------------------------------------------------------------------
    def type(self, dtype=None, non_blocking=False):
        """Without an argument the type's name (`torch.FloatTensor`), else the tensor converted to that type."""
        if dtype is None:
            place = "cuda" if self.is_cuda else self.device.type
            return f"torch.{'' if place == 'cpu' else place + '.'}{self.dtype._scalar_type_name}Tensor"
        return self.to(*_named_type(dtype))

    def gpu(self, device=None, non_blocking=False):
        """The tensor on the GPU."""
        return self.to("gpu" if device is None else device)

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        """The tensor on the GPU under `python -m rustgrad`; otherwise an error that says what to do."""
        place = "cuda" if device is None else _C.device("cuda", device) if type(device) is int else device
        if _C.device(place).type == "cpu":
            raise RuntimeError("Invalid device, must be cuda device")
        return self.to(place, memory_format=memory_format)

    def get_device(self):
        """The index of the GPU; -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    def pin_memory(self, device=None):
        """The tensor itself: memory need not be pinned."""
        return self

    def is_pinned(self, device=None):
        """False: memory need not be pinned."""
        return False

    def record_stream(self, s):
        """No effect: a device has one stream, so that memory is never used again too early.

        Raises:
            RuntimeError: a tensor on the CPU.
        """
        if self.device.type == "cpu":
            raise RuntimeError("record_stream: expected a tensor on a GPU, got one on cpu")

    # --- constructors of the same kind -----------------------------------------------------------------------
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        """A tensor of `data` with this tensor's dtype and device by default."""
        dtype, device = dtype or self.dtype, device or self.device
        if not isinstance(data, _C.Tensor):
            return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
            stacklevel=2,
        )
        return data.detach().to(device, dtype, copy=True).requires_grad_(requires_grad)

    def new(self, *args, **kwargs):
        """The legacy constructor of this tensor's type: sizes give uninitialised memory, data is copied."""
        return legacy(self.dtype, self.device, args, kwargs)

    def dequantize(self):
        """The numbers that a quantised tensor stands for, in float32; another tensor converted to float32."""
        own = type(self).dequantize
        if self.is_quantized and getattr(own, "__wrapped__", own) is not Methods.dequantize:
            return own(self)
        return self.to(_C.float32)


def _wanting(name):
    def method(self):
        own = getattr(type(self), name)
        if getattr(own, "__wrapped__", own) is not method:  # `Tensor.q_scale(t)`
            return own(self)
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: {name} expected a quantised tensor, got one of "
            f"{self.dtype}. Hint: torch.quantize_per_tensor."
        )

    method.__name__ = name
    method.__doc__ = "NotImplementedError: the tensor is not quantised."
    return method


for _name in (
    "int_repr q_scale q_zero_point qscheme q_per_channel_scales q_per_channel_zero_points q_per_channel_axis"
).split():
    setattr(Methods, _name, _wanting(_name))


def _same_device(a, b):
    a = a if isinstance(a, _C.device) else _C.device(a)
    return a == b or a.type == b.type == "cpu"


def _named_type(name):
    """(device, dtype) of a dtype, an old tensor type, or the name of one; the device is None for a dtype."""
    if isinstance(name, _dtype):
        return None, name
    if name is Tensor:
        return "cpu", _C.get_default_dtype()
    # The old types print as their names.
    parts = (name if isinstance(name, str) else str(name)).split(".")
    for d in DTYPES.values():
        if parts[-1] == f"{d._scalar_type_name}Tensor" and parts[0] in ("torch", "rustgrad"):
            return parts[1] if len(parts) > 2 else "cpu", d
        if parts[-1] == d._name:
            return None, d
    raise ValueError(f"invalid type: '{name if isinstance(name, str) else getattr(name, '__name__', name)}'")


def _is_size(value):
    """Whether it is an int, or a tensor that holds one."""
    if isinstance(value, Tensor):
        return value.numel() == 1 and not value.is_floating_point() and not value.is_complex()
    return hasattr(value, "__index__") and not hasattr(value, "__len__") and not isinstance(value, bool)


def legacy(dtype, device, args, kwargs):
    """The result of the legacy constructors of a dtype and device.

    `Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` copies data, `Tensor(size)` takes a `Size`, `Tensor(storage)` and
    `Tensor(tensor)` share memory.
    """
    wanted = kwargs.pop("device", None)
    if wanted is not None:
        wanted, home = _C.device(wanted), _C.device(device)
        if wanted.type != home.type:
            raise RuntimeError(
                f"legacy constructor expects device type: {home.type} but device type: {wanted.type} was passed"
            )
    place = device if wanted is None else wanted
    if "size" in kwargs and not args:
        args = (Size(kwargs.pop("size")),)
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not args:
        return ops["empty"](0, dtype=dtype, device=place)
    first = args[0]
    if len(args) == 1 and isinstance(first, (TypedStorage, UntypedStorage)):
        return ops["empty"](0, dtype=dtype, device=place).set_(first)
    if len(args) == 1 and isinstance(first, Tensor):
        if wanted is not None:
            raise RuntimeError(
                "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
                "torch.tensor(...) or torch.as_tensor(...) instead."
            )
        if first.dtype != dtype or not _same_device(device, first.device):
            raise TypeError(
                f"expected a {dtype} tensor on {_C.device(device)} (got {first.type()}). Use tensor.to() to convert it."
            )
        return first.detach()
    if len(args) == 1 and isinstance(first, Size):
        return ops["empty"](tuple(first), dtype=dtype, device=place)
    if all(map(_is_size, args)):
        return ops["empty"](args, dtype=dtype, device=place)
    if len(args) > 1:
        raise TypeError(
            "new() received an invalid combination of arguments - got "
            f"({', '.join(type(a).__name__ for a in args)}), but expected sizes or one sequence of data"
        )
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(first, (float, bool, complex)):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return _C.tensor(first, dtype=dtype, device=place)


# The kind of device of the default tensor type.
legacy_home = "cpu"


def legacy_new(*args, **kwargs):
    """`Tensor(...)`: the legacy constructor of the default tensor type. Of a tensor it is a view.

    Default devices and device blocks do not move it; `set_default_tensor_type` does.
    """
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        return _C.ops["alias"](args[0])
    return legacy(_C.get_default_dtype(), legacy_home, args, kwargs)
