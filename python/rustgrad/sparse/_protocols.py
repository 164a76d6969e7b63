"""What a sparse tensor answers to Python's protocols and to questions about memory, which it has not as one block."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NoReturn

from .. import _C, _conversions, _formats
from .._C import Tensor
from ._printing import NAMES


def _impl(self):
    """The name of the implementation in errors: `SparseTensorImpl`, `SparseCsrTensorImpl`."""
    return "SparseTensorImpl" if self.layout is _formats.sparse_coo else "SparseCsrTensorImpl"


def _without_storage(name):
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: Cannot access storage of {_impl(self)}")

    method.__name__ = name
    method.__doc__ = "NotImplementedError: there is no one block of memory."
    return method


def _to(name, dtype):
    def method(self: Any, memory_format: Any = None) -> Any:
        return self.to(dtype)

    method.__name__ = name
    method.__doc__ = f"The tensor with values of {dtype._name}; itself if it has them."
    return method


def asked(name):
    """A method that answers as the values do."""

    def method(self: Any) -> Any:
        return getattr(self._value, name)()

    method.__name__ = name
    method.__doc__ = "What the values answer."
    return method


def others_decide(types: Any, own: type) -> bool:
    """Whether a class among the operands of an op has a `__torch_function__` of its own, which then decides what it makes of ours."""
    ours = Tensor.__torch_function__.__func__
    others = (t for t in types if not issubclass(t, own))
    return any(getattr(t.__torch_function__, "__func__", None) is not ours for t in others)


class Protocols:
    """A part of the body of sparse tensors, and of other tensors whose values are a tensor of their own."""

    _value: Tensor

    device = property(lambda self: self._value.device, doc="Where the values live.")
    is_cpu = property(lambda self: self._value.is_cpu, doc="Whether the values are on the CPU.")
    is_meta = property(lambda self: self._value.is_meta, doc="Whether the values have no memory.")
    is_cuda = property(lambda self: self._value.is_cuda, doc="Whether they are on the GPU, where `cuda` means it.")
    is_gpu = property(lambda self: self._value.is_gpu, doc="Whether the values are on a GPU.")
    _version = property(lambda self: self._value._version, doc="How often the values have been written in place.")

    # --- memory ----------------------------------------------------------------------------------------------
    def stride(self, dim: Any = None) -> Any:
        """Zeros, of the layout `sparse_coo`; the others have no strides."""
        self._check_strides("strides")
        return (0,) * self.dim() if dim is None else self.size(dim) * 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False, of the layout `sparse_coo`; the others refuse."""
        self._check_strides("is_contiguous")
        return False

    def _check_strides(self, what):
        if self.layout is not _formats.sparse_coo:
            raise RuntimeError(f"Sparse {NAMES[self.layout][6:].upper()} tensors do not have {what}")

    def storage_offset(self) -> int:
        """Zero."""
        return 0

    def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> Any:
        """The tensor itself where both have the shape; else NotImplementedError."""
        return self if self.shape == the_template.shape else self.resize_()

    def data_ptr(self) -> NoReturn:
        """RuntimeError: indices and values have addresses of their own."""
        raise RuntimeError("data_ptr: Cannot access data pointer of Tensor that doesn't have storage")

    def dim_order(self, *, ambiguity_check: Any = False) -> NoReturn:
        """AttributeError: there are no strides."""
        raise AttributeError(
            f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a dense tensor first."
        )

    @property
    def nbytes(self) -> int:
        """The bytes of the dense tensor, of compressed layouts; RuntimeError of `sparse_coo`. Both as in PyTorch."""
        if self.layout is not _formats.sparse_coo:
            return self.numel() * self.element_size()
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of "
            "the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
        )

    # --- dtype and device ------------------------------------------------------------------------------------
    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor with other values' dtype or on another device: the arguments are those of `Tensor.to`.

        Raises:
            RuntimeError: a memory format that is not `preserve_format`.
        """
        model = args[0] if args else kwargs.get("other")
        if isinstance(model, Protocols):
            kwargs.pop("other", None)
            args = (model.device, model.dtype, *args[1:])
        device, dtype, non_blocking, copy, memory_format = _C._to_arguments(args, kwargs)
        if memory_format not in (None, _formats.preserve_format):
            raise RuntimeError("to: memory format option is only supported by strided tensors")
        return self._map_parts(lambda t: t.to(device, non_blocking=non_blocking, copy=copy), dtype)

    def _map_parts(self, move, dtype=None):
        """All parts moved; the values also cast. The tensor itself if nothing changes."""
        from ._tensor import with_value

        value = move(self._value)
        value = value if dtype is None else value.to(dtype)
        moved = [move(part) for part in self._pattern()]
        if value is self._value and all(a is b for a, b in zip(moved, self._pattern(), strict=True)):
            return self
        made = with_value(self, value, "ToCopyBackward0")
        for name, part in zip(made._parts, moved, strict=False):
            setattr(made, name, part)
        return made

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Without an argument the type's name (`torch.sparse.FloatTensor`), else the tensor converted to that type."""
        if dtype is not None:
            name = dtype if isinstance(dtype, str) else str(dtype)
            return self.to(*_conversions._named_type(name.replace(".sparse.", ".") if "Tensor" in name else dtype))
        if self.layout is not _formats.sparse_coo:
            raise RuntimeError(f"type: Unimplemented backend {NAMES[self.layout]}{self.device.type.upper()}")
        place = "cuda" if self.is_cuda else self.device.type
        return f"torch.{'' if place == 'cpu' else place + '.'}sparse.{self.dtype._scalar_type_name}Tensor"

    def type_as(self, other: Tensor) -> Any:
        """The tensor with the dtype of another one, and on its device."""
        return self.to(device=other.device, dtype=other.dtype)

    def new(self, *args: Any, **kwargs: Any) -> Any:
        """The legacy constructor of `sparse_coo` tensors: of a size, or of indices, values and a size."""
        from ._legacy import made

        return made(self.dtype, args, kwargs)

    def cpu(self, memory_format: Any = None) -> Any:
        """The tensor on the CPU."""
        return self.to("cpu")

    # --- Python's protocols ----------------------------------------------------------------------------------
    def numpy(self, *, force: bool = False) -> NoReturn:
        """TypeError: NumPy has no sparse arrays."""
        raise TypeError(f"can't convert {NAMES[self.layout]} layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self.numpy()

    def __dlpack__(self, **kwargs: Any) -> NoReturn:
        """BufferError: DLPack has no sparse layouts."""
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def tolist(self) -> Any:
        """The number of a 0-d tensor; of others RuntimeError: use `to_dense()`."""
        if self.dim() == 0:
            return self.item()
        raise RuntimeError(
            "tolist: Cannot access data pointer of Tensor that doesn't have storage. Hint: call .to_dense()."
        )

    def item(self) -> Any:
        """The value of a one-element tensor as a Python number, zero if it is not specified.

        Raises:
            RuntimeError: the tensor has more or fewer elements.
        """
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def __bool__(self) -> bool:
        n = self.numel()
        if n != 1:
            what = "no values" if n == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self._one())

    def __float__(self) -> float:
        return float(self._one())

    def __complex__(self) -> complex:
        return complex(self._one())

    def __index__(self) -> int:
        return self._one().__index__()

    __nonzero__, __long__ = __bool__, __int__

    def _one(self):
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.to_dense()

    def __format__(self, spec: str) -> str:
        if self.dim() == 0:
            return self.item().__format__(spec)
        if spec:
            raise TypeError("unsupported format string passed to Tensor.__format__")
        return repr(self)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("Cannot assign to a sparse tensor")

    def _repr_html_(self) -> None:
        """None: a notebook shows the text."""

    def as_subclass(self, cls: Any) -> NoReturn:
        """NotImplementedError: a sparse tensor is an object of its layout's class."""
        raise NotImplementedError(f"as_subclass: a {self.layout._name} tensor is of no other class. Hint: .to_dense().")

    def apply_(self, callable: Any) -> NoReturn:
        """RuntimeError: use `values().apply_`."""
        raise RuntimeError(
            "apply_: Cannot access data pointer of Tensor that doesn't have storage. Hint: use values()."
        )

    map_ = map2_ = apply_

    def module_load(self, other: Any, assign: bool = False) -> Any:
        """The tensor that `load_state_dict` swaps in: its copy of `other`, or `other` itself."""
        return other.detach() if assign else self.copy_(other).detach()

    # --- copies ----------------------------------------------------------------------------------------------
    def __copy__(self) -> Any:
        made = self.detach().requires_grad_(self.requires_grad)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in made.__dict__})
        return made

    def __deepcopy__(self, memo: Any) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) not in memo:
            import copy

            made = memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
            others = {k: v for k, v in self.__dict__.items() if k not in made.__dict__ and k != "_held_grad"}
            made.__dict__.update(copy.deepcopy(others, memo))
            if self.grad is not None:
                made.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_parameter, _rebuild_sparse_tensor
        from ._rebuild import parts_of

        if getattr(self, "_is_param", False):
            return (_rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict()))
        return (_rebuild_sparse_tensor, parts_of(self))


for _name in (
    "storage untyped_storage _typed_storage storage_type share_memory_ is_shared is_set_to set_ resize resize_ resize_as "
    "new_empty_strided"
).split():
    setattr(Protocols, _name, _without_storage(_name))
for _name, _dtype in _conversions.DTYPES.items():
    setattr(Protocols, _name, _to(_name, _dtype))
