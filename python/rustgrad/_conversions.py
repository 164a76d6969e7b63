"""Conversions of dtype and device: `to`, `type`, `float()` ..., and the legacy constructors `Tensor(2, 3)`, `new`."""

import warnings

from . import _C
from ._C import Size, Tensor, ops
from ._C import dtype as _dtype
from ._formats import preserve_format
from .storage import TypedStorage, UntypedStorage

DTYPES = {
    "float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16, "int": _C.int32,
    "long": _C.int64, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "chalf": _C.complex32, "cfloat": _C.complex64, "cdouble": _C.complex128,
}  # fmt: skip


class Methods:
    """A part of the body of `Tensor`."""

    def chalf(self, *, memory_format=None):
        """The tensor as complex32."""
        return self.to(_C.complex32, memory_format=memory_format)

    # --- dtype and device ------------------------------------------------------------------------------------
    def to(self, *args, **kwargs):
        """The tensor in another dtype or on another device: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`.

        Returns the tensor itself if nothing changes, unless `copy=True`. A copy keeps the order of the dimensions in
        memory, or has that of `memory_format`, if given.
        """
        # The most common forms first: a dtype, "cpu", a device and a dtype.
        plain = 0 if kwargs else len(args)
        if plain == 1 and type(args[0]) is _dtype:
            return self if args[0] is self.dtype else ops["_to_copy"](self, args[0])
        if plain == 1 and type(args[0]) is str and args[0] == "cpu" and self.is_cpu:
            return self
        if plain == 2 and type(args[1]) is _dtype and isinstance(args[0], (str, _C.device)):
            (device, dtype), copy, layout = args, False, None
        else:
            device, dtype, _, copy, layout = to_arguments(args, kwargs)
            dtype, device = dtype or self.dtype, device if device is not None else self.device
        formed = layout in (None, preserve_format) or self._follows(layout)
        if not copy and formed and dtype == self.dtype and _same_device(device, self.device):
            return self
        return ops["_to_copy"](self, dtype, device, layout)

    def type(self, dtype=None, non_blocking=False):
        """Without an argument the type's name (`torch.FloatTensor`), else the tensor converted to that type."""
        if dtype is None:
            place = "cuda" if self.is_cuda else self.device.type
            return f"torch.{'' if place == 'cpu' else place + '.'}{self.dtype._scalar_type_name}Tensor"
        return self.to(*_named_type(dtype))

    def type_as(self, other):
        """The tensor in the dtype and on the device of another."""
        return self.to(other.device, other.dtype)

    def cpu(self, memory_format=None):
        """The tensor on the CPU."""
        return self.to("cpu", memory_format=memory_format)

    def gpu(self, device=None, non_blocking=False):
        """The tensor on the GPU."""
        return self.to("gpu" if device is None else device)

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        """The tensor on the GPU under `python -m rustgrad`; otherwise an error that says what to do."""
        place = "cuda" if device is None else _C.device("cuda", device) if type(device) is int else device
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

    @property
    def is_cpu(self):
        """Whether the tensor is on the CPU."""
        return self.device.type == "cpu"

    @property
    def is_meta(self):
        """Whether the tensor has no memory, only a shape, strides and a dtype."""
        return self.device.type == "meta"

    @property
    def is_cuda(self):
        """Whether the tensor is on the GPU, under `python -m rustgrad`; otherwise False."""
        from . import cuda

        return cuda._stands_for_gpu and self.is_gpu

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


def cast_method(name, dtype):
    def method(self, memory_format=None):
        return self.to(dtype, memory_format=memory_format)

    method.__name__ = name
    method.__doc__ = f"The tensor as {dtype._name}."
    return method


def _same_device(a, b):
    a = a if isinstance(a, _C.device) else _C.device(a)
    return a == b or a.type == b.type == "cpu"


_PYTHON_TYPES = {float: _C.float64, int: _C.int64, complex: _C.complex128, bool: _C.bool}


def to_arguments(args, kwargs):
    """(device, dtype, non_blocking, copy, memory_format) of the arguments of `to`, in any of its three forms."""
    first, given = args[0] if args else None, dict(kwargs)
    if isinstance(first, Tensor):
        names = ("other", "non_blocking", "copy")
    elif isinstance(first, _dtype) or (isinstance(first, type) and first in _PYTHON_TYPES):
        names = ("dtype", "non_blocking", "copy")
    else:
        names = ("device", "dtype", "non_blocking", "copy")
    for name, value in zip(names, args):  # noqa: B905 - too many are refused below
        if name in given:
            raise TypeError(f"to() got multiple values for argument '{name}'")
        given[name] = value
    other = given.pop("other", None)
    if other is None:
        other = given.pop("tensor", None)
    device, dtype = given.pop("device", None), given.pop("dtype", None)
    non_blocking, copy = given.pop("non_blocking", False), given.pop("copy", False)
    layout = given.pop("memory_format", None)
    if isinstance(dtype, type):
        dtype = _PYTHON_TYPES.get(dtype, dtype)
    fits = (
        not given
        and len(args) <= len(names)
        and isinstance(other, (Tensor, type(None)))
        and isinstance(dtype, (_dtype, type(None)))
        and isinstance(device, (str, _C.device, int, type(None)))
        and not isinstance(device, bool)
        and isinstance(non_blocking, bool)
        and isinstance(copy, bool)
    )
    if not fits:
        got = [type(a).__name__ for a in args] + [f"{name}={type(v).__name__}" for name, v in kwargs.items()]
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:\n"
            " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
            "torch.memory_format memory_format = None)\n"
            " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
            " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
        )
    if other is not None:
        device, dtype = other.device if device is None else device, dtype or other.dtype
    return device, dtype, non_blocking, copy, layout


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


def legacy_new(*args, **kwargs):
    """`Tensor(...)`: the legacy constructor with the default dtype and on the default device; a tensor keeps its own."""
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        return args[0].detach()
    return legacy(_C.get_default_dtype(), _C.get_default_device(), args, kwargs)
