"""The methods of `Tensor` that Python carries: conversions, questions, protocols; installed on the class below.

What computes is an op of the table and is set on the class by the extension module.
"""

import warnings

from . import _C
from ._C import Size, Tensor, ops
from ._C import dtype as _dtype

_DTYPES = {
    "float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16, "int": _C.int32,
    "long": _C.int64, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "cfloat": _C.complex64, "cdouble": _C.complex128,
}  # fmt: skip


class _Methods:
    """The body of `Tensor`: each name here becomes an attribute of the class."""

    # --- shape and memory ------------------------------------------------------------------------------------
    def size(self, dim=None):
        """The sizes of the dimensions, or of one of them."""
        shape = self.shape
        if dim is None:
            return shape
        n = max(len(shape), 1)
        if not -n <= dim < n or not shape:
            if not shape:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        return shape[dim]

    def dim(self):
        """The number of dimensions."""
        return self.ndim

    ndimension = dim

    def numel(self):
        """The number of elements."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    nelement = numel

    def stride(self, dim=None):
        """The step in elements from one index of a dimension to the next; all of them without `dim`."""
        strides = tuple(_C._storage_info(self)[2])
        return strides if dim is None else strides[dim]

    def storage_offset(self):
        """The position of the first element in the storage, in elements."""
        return _C._storage_info(self)[3]

    def data_ptr(self):
        """The address of the first element; 0 on a GPU."""
        return _C._storage_info(self)[4]

    def is_contiguous(self, memory_format=None):
        """Whether the memory is row-major without gaps."""
        step = 1
        for d, s in zip(reversed(self.shape), reversed(self.stride()), strict=True):
            if d == 0:
                return True
            if d != 1:
                if s != step:
                    return False
                step *= d
        return True

    def element_size(self):
        """Bytes per element."""
        return self.itemsize

    def is_floating_point(self):
        """Whether the dtype is a floating point one."""
        return self.dtype.is_floating_point

    def is_complex(self):
        """Whether the dtype is a complex one."""
        return self.dtype.is_complex

    def is_signed(self):
        """Whether the dtype has negative numbers."""
        return self.dtype.is_signed

    def is_set_to(self, tensor):
        """Whether both tensors show the same memory in the same way."""
        return _C._storage_info(self)[:4] == _C._storage_info(tensor)[:4] and self.shape == tensor.shape

    def resize_(self, *sizes, memory_format=None):
        """Changes the shape in place; the storage grows where it must, and keeps its elements."""
        _C._resize(self, _sizes(sizes))
        return self

    def resize_as_(self, other):
        return self.resize_(other.shape)

    def set_(self, source=None, storage_offset=0, size=None, stride=None):
        """Shows the memory of another tensor."""
        if source is None:
            source = ops["empty"](0, dtype=self.dtype, device=self.device)
        _C._set_(self, source, storage_offset, size, stride)
        return self

    # --- values ----------------------------------------------------------------------------------------------
    def item(self):
        """The value of a tensor of one element as a Python number.

        Raises:
            RuntimeError: the tensor has more or fewer elements.
        """
        return _C._item(self)

    def tolist(self):
        """The elements as nested lists; a number for a 0-d tensor."""
        return _C._tolist(self)

    def numpy(self, *, force=False):
        """The same memory as a NumPy array.

        Raises:
            RuntimeError: the tensor requires grad (use `detach()`), unless `force`.
            TypeError: it is on a GPU (use `cpu()`), or its dtype is not one of NumPy's.
        """
        import numpy

        if force:
            return self.detach().cpu().numpy()
        return numpy.asarray(_Array(self))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self, *, tensor_contents=None):
        kind = type(self)
        prefix = "tensor(" if kind is Tensor or kind.__name__ == "Parameter" else f"{kind.__name__}("
        return _C._repr(self, prefix)

    __str__ = __repr__

    def __format__(self, spec):
        if self.ndim == 0:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self if self.ndim == 0 else self.flip(0)

    def __contains__(self, element):
        if not isinstance(element, (Tensor, int, float, complex)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        return bool((self == element).any().item())

    def __bool__(self):
        n = self.numel()
        if n != 1:
            what = "no values" if n == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(_C._item(self))

    def __int__(self):
        return int(_C._item(self))

    def __float__(self):
        return float(_C._item(self))

    def __complex__(self):
        return complex(_C._item(self))

    def __index__(self):
        if self.dtype.is_floating_point or self.dtype.is_complex or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(_C._item(self))

    def __dir__(self):
        return sorted({*dir(type(self)), *self.__dict__})

    # --- dtype and device ------------------------------------------------------------------------------------
    def to(self, *args, **kwargs):
        """The tensor in another dtype or on another device: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`.

        Returns the tensor itself where nothing changes, unless `copy=True`.
        """
        dtype, device, copy = _to_arguments(args, kwargs)
        dtype, device = dtype or self.dtype, device if device is not None else self.device
        if not copy and dtype == self.dtype and _same_device(device, self.device):
            return self
        return ops["_to_copy"](self, dtype, device)

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
        return self.to("cpu")

    def gpu(self, device=None, non_blocking=False):
        """The tensor on the GPU."""
        return self.to("gpu" if device is None else device)

    def pin_memory(self, device=None):
        return self

    def is_pinned(self, device=None):
        return False

    @property
    def is_cuda(self):
        return False

    # --- autograd --------------------------------------------------------------------------------------------
    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Sums the gradient of this tensor into the `.grad` of the leaves it was made from.

        Args:
            gradient (Tensor, optional): the gradient with respect to this tensor, of its shape; 1 for a scalar.
            retain_graph (bool, optional): keep the graph for another pass; by default as `create_graph`.
            create_graph (bool): record the computation of the gradients, for gradients of gradients.
            inputs (sequence of Tensor, optional): accumulate only into these.
        """
        if gradient is None and inputs is None and self.requires_grad and self.numel() == 1 and not self.is_complex():
            keep = create_graph if retain_graph is None else retain_graph
            one = ops["ones_like"](self) if self.dtype.is_floating_point else None
            _C._run_backward((self,), (one,), keep, create_graph, (), True, True)
            return
        from .autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def requires_grad_(self, requires_grad=True):
        """Switches the recording of gradients for a leaf."""
        _C._requires_grad_(self, requires_grad)
        return self

    def retain_grad(self):
        """Keeps the gradient of a non-leaf in `.grad`."""
        _C._retain_grad(self)

    def register_hook(self, hook):
        """Calls `hook(grad)` whenever the gradient is computed; it may return another. Returns a removable handle."""
        return _C._register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook):
        """Calls `hook(tensor)` after the gradient of a leaf was accumulated."""
        return _C._register_post_accumulate_grad_hook(self, hook)

    def detach(self):
        """The same memory without history; never requires grad."""
        return _C._detach(self)

    def detach_(self):
        """Cuts the tensor off from the op that made it."""
        _C._detach_(self)
        return self

    def is_inference(self):
        """Whether the tensor was made in inference mode."""
        return _C._is_inference(self)

    # --- copies ----------------------------------------------------------------------------------------------
    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
                "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
                "see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        import copy

        new = Tensor._make_subclass(type(self), _copy_with_storage(self.detach(), memo), self.requires_grad)
        memo[id(self)] = new
        new.__dict__ = copy.deepcopy(self.__dict__, memo)
        if self.grad is not None:
            new.grad = copy.deepcopy(self.grad, memo)
        return new

    def __copy__(self):
        new = Tensor._make_subclass(type(self), self.detach(), self.requires_grad)
        new.__dict__.update(self.__dict__)
        return new

    def __reduce_ex__(self, protocol):
        state = self.__dict__ or None
        # Dimensions in the order of memory, so that a transposed tensor comes back with its strides.
        order = sorted(range(self.ndim), key=lambda d: -self.stride(d))
        data = self.detach().cpu().permute(order).contiguous()
        raw = bytes(memoryview(_bytes(data)))
        args = (type(self), raw, tuple(data.shape), order, self.dtype._name, self.requires_grad, str(self.device))
        return (_rebuild, args, state)

    def __setstate__(self, state):
        self.__dict__.update(state)

    # --- constructors of the same kind -----------------------------------------------------------------------
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        """A tensor of `data` with this tensor's dtype and device by default."""
        return _C.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)

    def new(self, *args, **kwargs):
        """The old constructor of this tensor's type: sizes give uninitialised memory, data is copied."""
        return _legacy(self.dtype, self.device, args, kwargs)

    # --- composed answers ------------------------------------------------------------------------------------
    def equal(self, other):
        """Whether both tensors have the same size and elements."""
        if self.shape != other.shape:
            return False
        return bool((self == other).all().item())

    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        """Whether all elements are close: `|self - other| <= atol + rtol * |other|`."""
        return bool(ops["isclose"](self, other, rtol, atol, equal_nan).all().item())

    def as_subclass(self, cls):
        """The same memory and history as an instance of `cls`."""
        return _C._as_subclass(self, cls)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule that shares the memory of a CPU tensor."""
        return _C._to_dlpack(self.clone() if copy else self)

    def __dlpack_device__(self):
        return (1, 0) if self.device.type == "cpu" else (7, self.device.index)

    def is_same_size(self, other):
        return self.shape == other.shape

    def apply_(self, function):
        """Replaces each element by `function(element)`; slow, and only for CPU tensors."""
        flat = [function(v) for v in self.reshape(-1).tolist()]
        self.copy_(_C.tensor(flat, dtype=self.dtype).reshape(self.shape))
        return self

    @property
    def T(self):
        """The dimensions in reverse order."""
        return self.permute(*range(self.ndim - 1, -1, -1)) if self.ndim else self.permute(())

    @property
    def mT(self):
        """The transpose of the last two dimensions."""
        if self.ndim < 2:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        return self.transpose(-2, -1)

    @property
    def H(self):
        """The conjugate transpose of a matrix."""
        if self.ndim not in (0, 2):
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor. "
                "For batches of matrices, consider using tensor.mH"
            )
        return self.transpose(0, 1).conj() if self.ndim == 2 else self.conj()

    @property
    def mH(self):
        """The conjugate transpose of the last two dimensions."""
        return self.mT.conj()

    @property
    def real(self):
        """The real part, a view; the tensor itself if it is real."""
        return ops["real"](self) if self.dtype.is_complex else self

    @real.setter
    def real(self, value):
        self.real.copy_(value) if isinstance(value, Tensor) else self.real.fill_(value)

    @property
    def imag(self):
        """The imaginary part of a complex tensor, a view."""
        return ops["imag"](self)

    @imag.setter
    def imag(self, value):
        self.imag.copy_(value) if isinstance(value, Tensor) else self.imag.fill_(value)

    @property
    def layout(self):
        from . import strided

        return strided

    @property
    def is_sparse(self):
        return False

    @property
    def is_quantized(self):
        return False

    @property
    def is_meta(self):
        return False

    @property
    def _backward_hooks(self):
        return None


def _cast_method(name, dtype):
    def method(self, memory_format=None):
        return self.to(dtype)

    method.__name__ = name
    method.__doc__ = f"The tensor as {dtype._name}."
    return method


class _Array:
    """What NumPy makes an array of: the memory of a tensor, which the array keeps alive."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__array_interface__ = _C._array_interface(tensor)


def _bytes(data):
    if data.dtype == _C.bfloat16:
        data = data.view(_C.int16)
    import ctypes

    n = data.numel() * data.itemsize
    return (ctypes.c_char * n).from_address(data.data_ptr()) if n else b""


def _copy_with_storage(data, memo):
    """A copy that shares memory with the copies of tensors that shared it: views stay views of each other."""
    if data.is_gpu:
        return data.clone()
    key = ("storage", _C._storage_key(data), data.dtype._name)
    if key not in memo:
        memo[key] = _C._from_storage_bytes(_C._storage_bytes(data), data.dtype)
    return memo[key].as_strided(data.shape, data.stride(), data.storage_offset())


def _rebuild(cls, raw, shape, order, dtype, requires_grad, device):
    out = ops["empty"](shape, dtype=getattr(_C, dtype))
    if raw:
        import ctypes

        ctypes.memmove(out.data_ptr(), raw, len(raw))
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return Tensor._make_subclass(cls, out.permute(inverse).to(device), requires_grad)


def _sizes(sizes):
    return list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)


def _same_device(a, b):
    a = a if isinstance(a, _C.device) else _C.device(a)
    return a == b


def _to_arguments(args, kwargs):
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    copy = kwargs.pop("copy", False)
    other = kwargs.pop("other", None)
    for name in ("non_blocking", "memory_format"):
        kwargs.pop(name, None)
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
    return dtype, device, copy


def _named_type(name):
    if isinstance(name, _dtype):
        return name
    if not isinstance(name, str):
        name = getattr(name, "__name__", str(name))
    short = name.rsplit(".", 1)[-1]
    for d in _DTYPES.values():
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


def _new(*args, **kwargs):
    return _legacy(_C.get_default_dtype(), _C.get_default_device(), args, kwargs)


def from_numpy(ndarray):
    """A tensor that shares memory with a NumPy array, both ways.

    A read-only array gives a tensor that refuses to be written.
    """
    if getattr(getattr(ndarray, "flags", None), "writeable", True) is False:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing "
            "to this tensor will raise an error. You may want to copy the array to protect its data or make it writable "
            "before converting it to a tensor.",
            UserWarning,
            stacklevel=2,
        )
    return _C.from_numpy(ndarray)


def _install():
    for name, value in vars(_Methods).items():
        if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
            setattr(Tensor, name, value)
    for name, dtype in _DTYPES.items():
        setattr(Tensor, name, _cast_method(name, dtype))
    Tensor._make_subclass = staticmethod(_C._make_subclass)
    Tensor.__doc__ = "A multi-dimensional array of one dtype on one device, with its place in the backward graph."
    Tensor.__module__ = "rustgrad"
    _C._set_legacy_new(_new)


def _install_size():
    def numel(self):
        """The number of elements of a tensor of this size."""
        n = 1
        for d in self:
            n *= d
        return n

    def getitem(self, index):
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    Size.numel = numel
    Size.__getitem__ = getitem
    Size.__add__ = lambda self, other: Size(tuple.__add__(self, tuple(other)))
    Size.__mul__ = Size.__rmul__ = lambda self, n: Size(tuple.__mul__(self, n))
    Size.__repr__ = lambda self: f"torch.Size({list(self)})"
    Size.__reduce__ = lambda self: (Size, (tuple(self),))
    Size.__module__ = "rustgrad"


_install()
_install_size()
