"""What a nested tensor answers to Python's protocols and to questions about memory, where a sparse tensor answers otherwise."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any, NoReturn

from .. import _formats
from .._C import Tensor
from ..sparse._protocols import Protocols as _Protocols
from ..sparse._protocols import asked


def dimension(self, dim, extra=0):
    """A dimension counted from the front. IndexError: there is no such dimension."""
    n = self.dim() + extra
    if not hasattr(dim, "__index__"):
        raise TypeError(f"expected a dimension as an int, got {type(dim).__name__}")
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim.__index__() % n


def sizes_of(args, kwargs, name):
    """Sizes or dimensions that are given one by one, as a sequence or by name. TypeError: they are not given."""
    if not args and name not in kwargs:
        raise TypeError(f"missing required argument '{name}'")
    args = args or (kwargs.pop(name),)
    return tuple(args[0]) if len(args) == 1 and not hasattr(args[0], "__index__") else args


def _refused(name):
    """A method that nested tensors have not."""

    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: not implemented for nested tensors. Hint: see .values() and .unbind()")

    method.__name__ = name
    method.__doc__ = "NotImplementedError: ask the values, or the sequences."
    return method


class Protocols(_Protocols):
    """A part of the body of nested tensors."""

    _value: Tensor

    # --- sizes and memory ------------------------------------------------------------------------------------
    def numel(self) -> int:
        """The number of elements of all sequences together."""
        if self.layout is _formats.strided or self._ragged.lengths is None:
            return self._value.numel()
        sizes = list(self._value.shape)
        sizes[self._ragged_idx - 1] = sum(self._ragged.counts)
        return math.prod(sizes)

    nelement = numel

    def dim(self) -> int:
        """The number of dimensions, with that of the batch."""
        if self.layout is _formats.jagged:
            return self._value.dim() + 1
        return len(self._sizes[0]) + 1 if self._sizes else 1

    ndimension = dim
    ndim = property(lambda self: self.dim(), doc="The number of dimensions.")

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return self.numel() * self.element_size()

    def is_pinned(self, device: Any = None) -> bool:
        """False: memory is not pinned."""
        return False

    def pin_memory(self, device: Any = None) -> Any:
        """The tensor itself: memory is not pinned."""
        return self

    def storage_offset(self) -> int:
        """Where the values begin in their storage."""
        return self._value.storage_offset()

    def untyped_storage(self) -> Any:
        """The storage of the values."""
        return self._value.untyped_storage()

    def data_ptr(self) -> int:
        """The address of the values, of the layout `strided`; zero of `jagged`, as in PyTorch."""
        return self._value.data_ptr() if self.layout is _formats.strided else 0

    def is_same_size(self, other: Any) -> bool:
        """Whether another tensor is nested in the same way. RuntimeError: it is not nested."""
        from ._tensor import is_same_size

        return is_same_size(self, other)

    # --- dtype and device ------------------------------------------------------------------------------------
    def _map_parts(self, move, dtype=None):
        from ._tensor import jagged, with_value

        value = move(self._value)
        value = value if dtype is None else value.to(dtype)
        if value is self._value:
            return self
        if self.layout is _formats.strided:
            return with_value(self, value)
        return jagged(value, self._ragged.moved(value.device), self._ragged_idx)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        """The tensor on a GPU."""
        return self._map_parts(lambda part: part.cuda(device))

    def gpu(self, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The tensor on a GPU."""
        return self._map_parts(lambda part: part.gpu(device))

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero. RuntimeError: there are more or fewer."""
        return bool(self)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Without an argument the type's name, else the tensor with values of that type."""
        if dtype is None:
            return self._value.type()
        return self._map_parts(lambda value: value.type(dtype))

    def share_memory_(self) -> Any:
        """Moves the values to shared memory."""
        self._value.share_memory_()
        return self

    # --- Python's protocols ----------------------------------------------------------------------------------
    def __dlpack__(self, **kwargs: Any) -> NoReturn:
        """BufferError: DLPack has no ragged arrays."""
        raise BufferError("Can't export nested tensors; expected a dense one")

    def _one(self):
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self._elements().reshape(())

    def item(self) -> Any:
        """The value of a one-element tensor. RuntimeError: the tensor has more or fewer elements."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._one().item()

    def __len__(self) -> int:
        return self.size(0)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __contains__(self, value: Any) -> bool:
        return bool((self._elements() == value).any())

    def _elements(self):
        from ._shape import elements

        return elements(self)

    def as_subclass(self, cls: Any) -> NoReturn:
        """NotImplementedError: a nested tensor is an object of its layout's class."""
        raise NotImplementedError("as_subclass: a nested tensor is of no other class. Hint: call .values().")

    def apply_(self, callable: Any) -> Any:
        """Replaces each element by what a function makes of it, on the CPU."""
        self._value.detach().apply_(callable)
        return self

    def _data(self):
        return self.detach()

    def _set_data(self, other):
        if not isinstance(other, Tensor) or other.layout is not self.layout or not other.is_nested:
            raise RuntimeError("data: expected a nested tensor of the same layout")
        wanted, other = self.requires_grad, other.detach()
        self._set(other)
        if wanted:
            self._value = other._value.detach().requires_grad_()

    data = property(_data, _set_data, doc="The same parts without history; assigning gives the tensor other parts.")

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_nested

        parts: tuple[Any, ...]
        if self.layout is _formats.jagged:
            ragged = self._ragged
            parts = (ragged.offsets, ragged.lengths, *ragged.given, self._ragged_idx)
        else:
            parts = (self._sizes,)
        return (_rebuild_nested, (self.layout, self._value.detach(), self.requires_grad, parts))


for _name in (
    "element_size is_complex is_floating_point is_signed get_device is_conj is_neg is_distributed is_inference is_shared _is_view"
).split():
    setattr(Protocols, _name, asked(_name))
for _name in (
    "storage _typed_storage storage_type is_set_to set_ resize resize_ resize_as resize_as_ new new_empty_strided dim_order numpy tolist "
    "map_ map2_ to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc to_mkldnn sparse_mask "
    "sparse_dim dense_dim __reversed__ __setitem__"
).split():
    setattr(Protocols, _name, _refused(_name))
for _name in ("dtype", "itemsize"):
    setattr(Protocols, _name, property(operator.attrgetter(f"_value.{_name}"), doc="That of the values."))


def rebuilt(layout, value, requires_grad, parts):
    """A nested tensor from a pickle."""
    from ._construct import nested_tensor_from_jagged
    from ._tensor import strided

    if layout is _formats.jagged:
        offsets, lengths, shortest, longest, at = parts
        made = nested_tensor_from_jagged(value, offsets, lengths, at, shortest, longest)
    else:
        made = strided(value, *parts)
    return made.requires_grad_(requires_grad)
