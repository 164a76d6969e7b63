"""Python protocols of tensors: printing, length, iteration, truth; NumPy and DLPack; copies and pickles;
Python functions applied to elements.
"""

from . import _C, _utils
from ._C import Size, Tensor
from ._own import is_own
from .storage import storage_of


class Methods:
    """A part of the body of `Tensor`."""

    def numpy(self, *, force=False):
        """The same memory as a NumPy array.

        Raises:
            RuntimeError: the tensor requires grad (use `detach()`), unless `force`.
            TypeError: it is on a GPU (use `cpu()`), or its dtype is not one of NumPy's.
        """
        import numpy

        if force:
            return self.detach().cpu().numpy()
        return numpy.asarray(_C._array_export(self))

    # NumPy defers operators between an array and a tensor to the tensor.
    __array_priority__ = 1000

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError(f"__array__: a copy is needed to convert from {array.dtype} to {dtype}")
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __array_wrap__(self, array, context=None, return_scalar=False):
        # As in PyTorch, where this is older than its dtype bool.
        return _C.from_numpy(array.astype("uint8") if array.dtype == bool else array)

    def __repr__(self, *, tensor_contents=None):
        kind = type(self)
        if _C._forward_levels():
            return _repr_of_dual(self)
        if kind is Tensor or kind.__name__ == "Parameter":
            return _C._repr(self, "tensor(")
        text = _C._repr(self, f"{kind.__name__}(")
        return f"Parameter({text})" if getattr(self, "_is_param", False) else text

    def _repr_html_(self):
        """What a notebook shows."""
        from ._html import tensor_html

        return tensor_html(self)

    def __format__(self, spec):
        if self.ndim == 0 and not self.is_meta:
            return self.item().__format__(spec)
        if spec:
            raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__")
        return str(self)

    def apply_(self, callable):
        """Replaces each element by `callable(element)`; slow, and only for CPU tensors."""
        return _mapped(self, callable)

    def map_(self, other, callable):
        """Replaces each element by `callable(element, that of other)`; slow, and only for CPU tensors."""
        return _mapped(self, callable, other)

    def map2_(self, x, y, callable):
        """Replaces each element by `callable(element, that of x, that of y)`; slow, and only for CPU tensors."""
        return _mapped(self, callable, x, y)

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
        return bool(_C._item(self, True))

    def __int__(self):
        return int(_number(self, "int64_t"))

    def __float__(self):
        return float(_number(self, "double"))

    def __complex__(self):
        return complex(_number(self, "complex<double>"))

    def __index__(self):
        if self.dtype.is_floating_point or self.dtype.is_complex or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(_C._item(self))

    def __dir__(self):
        return sorted({*dir(type(self)), *self.__dict__})

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule that shares the memory of a CPU tensor."""
        if stream is not None and type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        if stream not in (None, -1):
            raise AssertionError("stream should be None on cpu.")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"__dlpack__: cannot export to device {tuple(dl_device)}. Copy the tensor there first.")
        versioned = max_version is not None and max_version[0] >= 1
        return _C._to_dlpack(self.clone() if copy else self, versioned, bool(copy))

    def __dlpack_device__(self):
        """(device type, index) in DLPack's terms: 1 is the CPU, 7 Vulkan."""
        return (1, 0) if self.device.type == "cpu" else (7, self.device.index)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """The default for subclasses of `Tensor`: results of ops are of that class. A subclass may override it."""
        if not all(issubclass(cls, t) for t in types) or _is_foreign(func):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return _in_class(result, cls)

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

        memory = copy.deepcopy(storage_of(self), memo)
        data = _C._over_storage(
            memory._tensor, self.dtype, self.storage_offset(), list(self.shape), list(self.stride())
        )
        new = Tensor._make_subclass(type(self), data, self.requires_grad)
        memo[id(self)] = new
        new.__dict__ = copy.deepcopy(self.__dict__, memo)
        for name, value in _utils._slots_of(self).items():
            setattr(new, name, copy.deepcopy(value, memo))
        if self.grad is not None:
            new.grad = copy.deepcopy(self.grad, memo)
        return new

    def __copy__(self):
        new = Tensor._make_subclass(type(self), self.detach(), self.requires_grad)
        new.__dict__.update(self.__dict__)
        for name, value in _utils._slots_of(self).items():
            setattr(new, name, value)
        return new

    def __reduce_ex__(self, protocol):
        _utils._warn_of_hooks(self)
        made = _utils._parts_of(self)
        if type(self) is Tensor and not self.__dict__:
            return made
        return (_utils._rebuild_from_type_v2, (made[0], type(self), made[1], _utils._state_of(self)))

    def __setstate__(self, state):
        self.__dict__.update(state)


def _repr_of_dual(tensor):
    """`repr` inside a level of forward mode: with the tangent of the innermost one."""
    level = _C._forward_levels()[-1]
    tangent = _C._tangent(tensor, level)
    seen = _C._forward_outside(0)
    try:
        text = tensor.__repr__()
        return text if tangent is None else f"{text[:-1]}, tangent={tangent!r})"
    finally:
        _C._forward_restore(seen)


def _number(tensor, kind):
    """The value of a one-element tensor, for a conversion to a Python number of that kind."""
    if tensor.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if tensor.requires_grad:
        _C._warn_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first.",
            3,
        )
    value = _C._item(tensor)
    if isinstance(value, complex) and "complex" not in kind:
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def _is_foreign(func):
    """Whether a function is PyTorch's, which does not take these tensors and would ask here again and again."""
    bound = getattr(func, "__self__", None)
    home = getattr(bound, "__objclass__", None) or getattr(func, "__objclass__", func)
    return (getattr(home, "__module__", None) or "").partition(".")[0] == "torch" and not is_own(home)


def _in_class(result, cls):
    """Tensors among the results of an op as objects of a subclass."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and not isinstance(result, Size):
        return type(result)(_in_class(r, cls) for r in result)
    return result


def _number_of(value):
    if isinstance(value, (str, bytes, list, tuple, type(None))):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return value


def _mapped(self, function, *others):
    name = ("apply_", "map_", "map2_")[len(others)]
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    lists = [t.expand_as(self).reshape(-1).tolist() for t in (self, *others)]
    return self.copy_(
        _C.tensor([_number_of(function(*values)) for values in zip(*lists, strict=True)], dtype=self.dtype).reshape(
            self.shape
        )
    )
