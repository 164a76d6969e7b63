"""What a masked tensor answers to Python's protocols and to questions about memory, where a sparse tensor answers otherwise."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NoReturn

from ... import _C, _conversions, _formats
from ..._C import Tensor
from ..._size import row_major
from ...sparse._protocols import Protocols as _Protocols
from ...sparse._protocols import asked


def _refused(name):
    """A method that masked tensors have not."""

    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        from .core import refuse

        refuse(name)

    method.__name__ = name
    method.__doc__ = "TypeError: ask the data."
    return method


def _for_subclasses(name):
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f".{name}() is not supported for tensor subclasses, got {type(self).__name__}. Hint: .to_tensor(value)"
        )

    method.__name__ = name
    method.__doc__ = "RuntimeError: a masked-out element is no number."
    return method


class Protocols(_Protocols):
    """A part of the body of masked tensors."""

    _value: Tensor
    _mask: Tensor

    # --- memory ----------------------------------------------------------------------------------------------
    def stride(self, dim: Any = None) -> Any:
        """The strides of the data; of sparse data those of a contiguous tensor."""
        if self._value.layout is _formats.strided:
            return self._value.stride() if dim is None else self._value.stride(dim)
        strides = row_major(self.shape)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the data is contiguous. ValueError: it is sparse."""
        self._check_dense()
        return self._value.is_contiguous()

    def contiguous(self, memory_format: Any = None) -> Any:
        """The tensor with contiguous data and mask; itself if they are. ValueError: the data is sparse."""
        from ._gradients import Call

        self._check_dense()
        if self._value.is_contiguous():
            return self
        call = Call()
        return call.give(call.take(self).contiguous(), self._mask.contiguous())

    def _check_dense(self):
        if self._value.layout is not _formats.strided:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")

    def storage_offset(self) -> int:
        """Where the data begins in its storage; zero of sparse data."""
        return self._value.storage_offset()

    @property
    def nbytes(self) -> int:
        """The bytes of the data, without the mask. RuntimeError: it is `sparse_coo`."""
        return self._value.nbytes

    # --- layout, dtype and device ----------------------------------------------------------------------------
    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Any:
        """A masked tensor with dense data and mask; itself if they are."""
        from .core import made

        self = self if dtype is None else self.to(dtype)
        return self if self._value.layout is _formats.strided else made(self._value.to_dense(), self._mask.to_dense())

    def to_sparse(self, *args: Any, layout: Any = None, **kwargs: Any) -> Any:
        """A masked tensor of the layout `sparse_coo`, or of another one, with the elements that are let through.

        Raises:
            TypeError: the layout is none for masked tensors.
        """
        from ._gradients import data_of
        from .core import made

        layout = _formats.sparse_coo if layout is None else layout
        if layout is _formats.strided or layout is self._value.layout:
            return self.to_dense() if layout is _formats.strided else self
        if layout not in (_formats.sparse_coo, _formats.sparse_csr):
            raise TypeError(f"data layout of {layout} is not supported.")
        dense = self.to_dense()
        mask = dense._mask.to_sparse() if layout is _formats.sparse_coo else dense._mask.to_sparse_csr()
        mask = mask.coalesce() if layout is _formats.sparse_coo else mask
        return made(data_of(dense).sparse_mask(mask), mask)

    def to_sparse_coo(self) -> Any:
        """A masked tensor of the layout `sparse_coo` with the elements that are let through."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim: Any = None) -> Any:
        """A masked matrix of the layout `sparse_csr` with the elements that are let through."""
        return self.to_sparse(layout=_formats.sparse_csr)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor with another dtype of the data or on another device: the arguments are those of `Tensor.to`."""
        model = args[0] if args else kwargs.get("other")
        if isinstance(model, Protocols):
            kwargs.pop("other", None)
            args = (model.device, model.dtype, *args[1:])
        device, dtype, non_blocking, copy, _ = _C._to_arguments(args, kwargs)
        return self._map_parts(lambda t: t.to(device, non_blocking=non_blocking, copy=copy), dtype)

    def _map_parts(self, move, dtype=None):
        from ._gradients import Call
        from .core import made

        def moved(data):
            return move(data) if dtype is None else move(data).to(dtype)

        value = moved(self._value)
        if value is self._value:
            return self
        if not value.requires_grad or value.layout is not _formats.strided:
            return made(value, move(self._mask))
        call = Call()
        return call.give(moved(call.take(self)), move(self._mask))

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        """The tensor on a GPU."""
        return self._map_parts(lambda part: part.cuda(device))

    def gpu(self, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The tensor on a GPU."""
        return self._map_parts(lambda part: part.gpu(device))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Without an argument the name of the data's type, else the tensor converted to that type."""
        return self._value.type() if dtype is None else self.to(*_conversions._named_type(dtype))

    # --- Python's protocols ----------------------------------------------------------------------------------
    def item(self) -> Any:
        """The value of a one-element tensor.

        Raises:
            RuntimeError: the tensor has more or fewer elements.
            ValueError: the element is masked out.
        """
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        if not bool(self._mask.to_dense().reshape(())):
            raise ValueError("item: expected a mask tensor whose element is let through, got one that is masked out")
        return self._value.to_dense().reshape(()).item()

    def _one(self):
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __index__(self) -> int:
        return operator.index(self._one())

    def __format__(self, spec: str) -> str:
        if spec:
            return self.item().__format__(spec) if self.dim() == 0 else super().__format__(spec)
        return repr(self)

    def __len__(self) -> int:
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __contains__(self, value: Any) -> bool:
        return bool(((self._value == value).to_dense() & self._mask.to_dense()).any())

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("MaskedTensor: items are not assigned. Hint: use torch.where, or write to .get_data()")

    def is_shared(self) -> bool:
        """Whether dense data lies in shared memory."""
        return self._value.layout is _formats.strided and self._value.is_shared()

    def _indices(self) -> Any:
        """The indices of `sparse_coo` data, all let through."""
        index = self._value._indices()
        return self._made(index, index.new_ones(index.shape, dtype=_C.bool))

    def _values(self) -> Any:
        """The values of `sparse_coo` data, masked as they are."""
        return self._made(self._value._values(), self._mask._values())

    def _made(self, data, mask):
        from .core import made

        return made(data, mask)

    def is_same_size(self, other: Any) -> bool:
        """Whether another tensor has the shape."""
        return self.shape == other.shape

    def as_subclass(self, cls: Any) -> NoReturn:
        """NotImplementedError: a masked tensor is of its own class."""
        raise NotImplementedError("as_subclass: a masked tensor is of no other class. Hint: .to_tensor(value).")

    def share_memory_(self) -> Any:
        """Moves data and mask to shared memory."""
        self._value.share_memory_()
        self._mask.share_memory_()
        return self

    def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> Any:
        """The tensor itself where both have the shape. TypeError: another shape."""
        return self if self.shape == the_template.shape else self.resize_()

    @property
    def data(self) -> Any:
        """The same parts without history; assigning gives the tensor other parts."""
        return self.detach()

    @data.setter
    def data(self, other: Any) -> None:
        if not isinstance(other, Protocols):
            raise TypeError(f"data: expected a MaskedTensor, got {type(other).__name__}")
        asked, other = self.requires_grad, other.detach()
        self._set(other)
        if asked:
            self._value = other._value.detach().requires_grad_()

    def __reduce_ex__(self, protocol: Any) -> Any:
        from ..._utils import _rebuild_masked

        return (_rebuild_masked, (self._value.detach(), self._mask, self.requires_grad))


for _name in (
    "element_size is_complex is_floating_point is_signed get_device is_conj is_neg is_distributed is_inference data_ptr "
    "untyped_storage"
).split():
    setattr(Protocols, _name, asked(_name))
for _name in (
    "storage _typed_storage storage_type is_set_to set_ resize resize_ resize_as new new_empty_strided dim_order map_ map2_ apply_ "
    "to_sparse_csc to_sparse_bsr to_sparse_bsc to_mkldnn sparse_mask sparse_dim dense_dim _nnz indices values is_coalesced coalesce "
    "crow_indices col_indices ccol_indices row_indices is_pinned pin_memory __reversed__ __array__ __dlpack__"
).split():
    setattr(Protocols, _name, _refused(_name))
for _name in ("tolist", "numpy"):
    setattr(Protocols, _name, _for_subclasses(_name))
