"""Tensors in another dtype or place: `to`, `type`, `float()` ..., and the old constructors `Tensor(2, 3)` and `new`."""

import warnings

from . import _C
from ._C import Size, Tensor, ops
from ._C import dtype as _dtype
from ._formats import preserve_format

DTYPES = {
    "float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16, "int": _C.int32,
    "long": _C.int64, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "cfloat": _C.complex64, "cdouble": _C.complex128,
}  # fmt: skip


class Methods:
    """A part of the body of `Tensor`."""

    # --- dtype and device ------------------------------------------------------------------------------------
    def to(self, *args, **kwargs):
        """The tensor in another dtype or on another device: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`.

        Returns the tensor itself where nothing changes, unless `copy=True`. A copy keeps the order of the dimensions in
        memory, or has that of `memory_format`.
        """
        dtype, device, copy, layout = _to_arguments(args, kwargs)
        dtype, device = dtype or self.dtype, device if device is not None else self.device
        formed = layout in (None, preserve_format) or self.is_contiguous(memory_format=layout)
        if not copy and formed and dtype == self.dtype and _same_device(device, self.device):
            return self
        return ops["_to_copy"](self, dtype, device, layout)

    def type(self, dtype=None, non_blocking=False):
        """Without an argument the type's name (`torch.FloatTensor`), else the tensor in that type."""
        if dtype is None:
            place = "torch." if self.device.type == "cpu" else f"torch.{self.device.type}."
            return f"{place}{self.dtype._scalar_type_name}Tensor"
        return self.to(_named_type(dtype))

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
        """The tensor on the GPU where a script runs under `python -m rustgrad`; else an error that says what to do."""
        from . import cuda

        cuda._gpu_or("current_device")
        return self.to("gpu" if device is None else device, memory_format=memory_format)

    def get_device(self):
        """The number of the GPU; -1 on the CPU."""
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
    def is_cuda(self):
        """Whether the tensor is on the GPU and a script runs under `python -m rustgrad`; else False."""
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
        """The old constructor of this tensor's type: sizes give uninitialised memory, data is copied."""
        return _legacy(self.dtype, self.device, args, kwargs)


def cast_method(name, dtype):
    def method(self, memory_format=None):
        return self.to(dtype, memory_format=memory_format)

    method.__name__ = name
    method.__doc__ = f"The tensor as {dtype._name}."
    return method


def _same_device(a, b):
    a = a if isinstance(a, _C.device) else _C.device(a)
    return a == b


def _to_arguments(args, kwargs):
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    copy = kwargs.pop("copy", False)
    other = kwargs.pop("other", None)
    kwargs.pop("non_blocking", None)
    layout = kwargs.pop("memory_format", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    args = list(args)
    flags = [a for a in args if isinstance(a, bool)]
    for a in args:
        if isinstance(a, Tensor):
            other = a
        elif isinstance(a, _dtype):
            dtype = a
        elif isinstance(a, (str, _C.device)):
            device = a
        elif a in (float, int, complex):
            dtype = {float: _C.get_default_dtype(), int: _C.int64, complex: _C.complex64}[a]
        elif a is not None and not isinstance(a, bool):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(a).__name__}), but expected one of:\n"
                " * (torch.device device, torch.dtype dtype, bool non_blocking, bool copy)\n"
                " * (torch.dtype dtype, bool non_blocking, bool copy)\n * (Tensor tensor, bool non_blocking, bool copy)"
            )
    if len(flags) > 1:
        copy = flags[1]
    if other is not None:
        dtype, device = dtype or other.dtype, device or other.device
    return dtype, device, copy, layout


def _named_type(name):
    if isinstance(name, _dtype):
        return name
    if not isinstance(name, str):
        name = getattr(name, "__name__", str(name))
    short = name.rsplit(".", 1)[-1]
    for d in DTYPES.values():
        if short in (f"{d._scalar_type_name}Tensor", d._name):
            return d
    raise ValueError(f"invalid type: '{name}'")


def _legacy(dtype, device, args, kwargs):
    """`Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` copies data, `Tensor(size)` takes a `Size`."""
    device = kwargs.pop("device", device)
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not args:
        return ops["empty"](0, dtype=dtype, device=device)
    first = args[0]
    if isinstance(first, Size) and len(args) == 1:
        return ops["empty"](tuple(first), dtype=dtype, device=device)
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return ops["empty"](args, dtype=dtype, device=device)
    if len(args) > 1:
        raise TypeError(
            "new() received an invalid combination of arguments - got "
            f"({', '.join(type(a).__name__ for a in args)}), but expected sizes or one sequence of data"
        )
    if isinstance(first, Tensor):
        if first.dtype != dtype:
            raise TypeError(f"expected {dtype} (got {first.dtype})")
        return first.detach()
    if isinstance(first, (float, bool, str)):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return _C.tensor(first, dtype=dtype, device=device)


def legacy_new(*args, **kwargs):
    """`Tensor(...)`: the old constructor in the default dtype and on the default device."""
    return _legacy(_C.get_default_dtype(), _C.get_default_device(), args, kwargs)
