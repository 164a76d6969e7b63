"""Nested tensors: a subclass of `Tensor` that holds the elements of all its sequences in one ordinary tensor.

As with sparse tensors, the object's own body is a *meta* tensor without memory, every op goes through the table of `_rules`, and the graph is
that of the values: see `docs/decisions/nested.md`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NoReturn

from .. import _C, _formats
from .._C import Size, Tensor, ops
from ..sparse._grads import Gradients
from ..sparse._protocols import others_decide
from . import _printing, _protocols
from ._ragged import Ragged, size_with


def _bare(cls, shape, value):
    return _C._as_subclass(ops["empty"](shape, dtype=value.dtype, device="meta"), cls)


def jagged(value, ragged, ragged_idx=1):
    """A tensor of the layout `jagged`: (batch, ..., j, ...).

    Args:
        value (Tensor): the sequences one after another along its dimension `ragged_idx - 1`; there is no dimension for the batch.
    """
    # In the body the ragged size is 0: whatever reads it has nothing to read.
    sizes = value.shape
    made = _bare(JaggedTensor, (ragged.batch, *sizes[: ragged_idx - 1], 0, *sizes[ragged_idx:]), value)
    made._value, made._ragged, made._ragged_idx = value, ragged, ragged_idx
    return made


def strided(value, sizes):
    """A tensor of the layout `strided`: components of the shapes `sizes`, one after another in a vector of values."""
    dims = len(sizes[0]) if sizes else 0
    made = _bare(StridedTensor, (len(sizes), *(0,) * dims), value)
    made._value, made._sizes = value, tuple(map(tuple, sizes))
    return made


def _as_size(n):
    """A number as PyTorch's class keeps it: the first size of a tensor without elements."""
    return None if n is None else ops["empty"]((n, 0))


def with_value(self, value):
    """A tensor with the structure of another one and other values: of the same number of dimensions, if it is jagged."""
    if isinstance(self, JaggedTensor):
        return jagged(value, self._ragged, self._ragged_idx)
    return strided(value, self._sizes)


def is_nested(value):
    """Whether an object is a nested tensor of any layout."""
    return isinstance(value, NestedTensor)


def is_same_size(self: Any, other: Any) -> bool:
    """Whether both are nested in the same way. RuntimeError: only one of them is nested."""
    if is_nested(self) and is_nested(other):
        return self._same(other)
    left, right = ("nested" if is_nested(t) else "not nested" for t in (self, other))
    raise RuntimeError(f"Expected both self and other to be nested tensors. Self is {left}. While Other is {right}.")


def refuse(name, layout) -> NoReturn:
    """The error for an op that has no rule for a layout."""
    raise NotImplementedError(
        f"{name}: not implemented for nested tensors of layout {layout}. Hint: call .values(), .unbind() or .to_padded_tensor()."
    )


class NestedTensor(_protocols.Protocols, Gradients, Tensor):
    """What the layouts have in common. Objects are made by the functions of `nested`, never by the class."""

    _value: Tensor

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__}: no constructor; expected a call of nested.nested_tensor or its kin")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._rules import call

        return NotImplemented if others_decide(types, NestedTensor) else call(func, args, kwargs or {})

    is_nested = property(lambda self: True, doc="True.")
    layout = property(lambda self: _formats.jagged, doc="`jagged` or `strided`.")
    _base = property(lambda self: self._value._base, doc="The tensor of which the values are a view, or None.")

    mT = property(lambda self: self.transpose(-2, -1), doc="The last two dimensions exchanged.")
    mH = property(lambda self: self.mT.conj(), doc="The last two dimensions exchanged, and conjugated.")
    T = H = property(
        lambda self: self.permute(*reversed(range(self.dim()))), doc="An error: the batch would not stay first."
    )
    real = property(lambda self: with_value(self, self._value.real), doc="The real parts.")
    imag = property(lambda self: with_value(self, self._value.imag), doc="The imaginary parts.")

    def values(self) -> Tensor:
        """The elements of all sequences, with memory and history of this tensor: see `nested_tensor_from_jagged`."""
        return self._value.view_as(self._value)

    def to_padded_tensor(self, padding: float, output_size: Any = None, out: Any = None) -> Tensor:
        """The dense tensor of `nested.to_padded_tensor`."""
        from ._construct import to_padded_tensor

        return to_padded_tensor(self, padding, output_size, out)

    def _same(self, other) -> bool:
        """Whether another tensor is nested in the same way."""
        raise NotImplementedError

    def _in_pattern(self, values):
        return values if values is None or is_nested(values) else with_value(self, values)

    def _aligned(self, other, what):
        """The values of another tensor of the same structure."""
        if not isinstance(other, Tensor):
            raise TypeError(f"{what}: expected a Tensor or None, got {type(other).__name__}")
        if not is_nested(other) or not self._same(other):
            raise RuntimeError(f"{what}: expected a nested tensor of the same structure as {self._described()}")
        return other._value

    def detach(self) -> Any:
        """The same structure and the memory of the values without history."""
        return with_value(self, self._value.detach())

    def _set(self, other):
        """Takes the parts of another tensor of the layout, in place."""
        for name in self._parts:
            setattr(self, name, getattr(other, name))
        self.__dict__.pop("_held_grad", None)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return _printing.text(self)


class JaggedTensor(NestedTensor):
    """A tensor of the layout `jagged`: one dimension is ragged."""

    _ragged: Ragged
    _ragged_idx: int
    _parts = ("_value", "_ragged", "_ragged_idx")

    def __new__(
        cls, values: Tensor, offsets: Tensor, *, lengths: Any = None, requires_grad: bool = False, **options: Any
    ) -> Any:
        """`nested_tensor_from_jagged` without history, under the name of PyTorch's class."""
        from ._construct import nested_tensor_from_jagged

        at, known = options.get("_ragged_idx", 1), options.get("_metadata_cache") or {}
        extremes = (None if known.get(name) is None else len(known[name]) for name in ("min_seqlen", "max_seqlen"))
        made = nested_tensor_from_jagged(values.detach(), offsets, lengths, at, *extremes)
        return made.requires_grad_() if requires_grad else made

    @property
    def shape(self) -> Size:
        """The sizes, of which one is ragged: `torch.Size([3, j1, 4])`."""
        inner = list(self._value.shape)
        inner[self._ragged_idx - 1] = self._ragged.size
        return size_with(self._ragged.batch, *inner)

    def size(self, dim: Any = None) -> Any:
        """The sizes, or that of a dimension."""
        return self.shape if dim is None else self.shape[_protocols.dimension(self, dim)]

    def stride(self, dim: Any = None) -> Any:
        """The strides; those before the ragged dimension are multiples of its size."""
        inner, ragged = self._value.stride(), self._ragged_idx - 1
        total = max(self._value.shape[ragged], 1)
        strides = [s if s <= inner[ragged] else self._ragged.size * (s // total) for s in inner]
        at = max(range(len(inner)), key=inner.__getitem__)
        first = self._ragged.size * inner[at] if at == ragged else strides[at] * self._value.shape[at]
        strides = (first, *strides)
        return strides if dim is None else strides[_protocols.dimension(self, dim)]

    def offsets(self) -> Tensor:
        """Where each sequence begins among the values: integers of shape (batch + 1)."""
        return self._ragged.offsets

    def lengths(self) -> Tensor | None:
        """The length of each sequence where there are gaps between them; else None."""
        return self._ragged.lengths

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether sequences lie one after another without gaps, row-major."""
        return self._ragged.lengths is None and self._value.is_contiguous()

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        """The names of the tensors that it consists of, and what else it is made of again (`__tensor_unflatten__`)."""
        more = ("_lengths", "_min_seqlen_tensor", "_max_seqlen_tensor")
        names = ["_values", "_offsets", *(name for name in more if getattr(self, name) is not None)]
        return names, {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx}

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Tensor], meta: Any, outer_size: Any, outer_stride: Any) -> Any:
        """A tensor of these parts; its sizes follow from them."""
        given = {key: inner_tensors.get(f"_{key}_tensor") for key in ("min_seqlen", "max_seqlen")}
        return JaggedTensor(
            inner_tensors["_values"],
            inner_tensors["_offsets"],
            lengths=inner_tensors.get("_lengths"),
            requires_grad=meta["requires_grad"],
            _ragged_idx=meta["ragged_idx"],
            _metadata_cache={key: t for key, t in given.items() if t is not None},
        )

    def _same(self, other) -> bool:
        return isinstance(other, JaggedTensor) and self.shape == other.shape

    def _described(self) -> str:
        return f"shape {tuple(self.shape)}"

    def _aligned(self, other, what):
        value = super()._aligned(other, what)
        if self._ragged.lengths is None:
            return value
        from ._shape import elements, from_elements

        return from_elements(other, elements(other))._value  # what lies between the sequences has no gradient

    _values = property(lambda self: self._value, doc="The values.")
    _offsets = property(lambda self: self._ragged.offsets, doc="The offsets.")
    _lengths = property(lambda self: self._ragged.lengths, doc="The lengths, or None.")
    _max_seqlen_tensor = property(
        lambda self: _as_size(self._ragged.given[1]), doc="The greatest length, if it is known."
    )
    _min_seqlen_tensor = property(lambda self: _as_size(self._ragged.given[0]), doc="The least length, if it is known.")
    _max_seqlen = property(lambda self: self._ragged.longest, doc="The greatest length.")
    _min_seqlen = property(lambda self: self._ragged.shortest, doc="The least length.")

    @property
    def _metadata_cache(self) -> dict[str, Tensor]:
        """The extreme lengths that are known, each as the first size of a tensor."""
        found = {"max_seqlen": self._max_seqlen_tensor, "min_seqlen": self._min_seqlen_tensor}
        return {name: size for name, size in found.items() if size is not None}

    def _get_max_seqlen(self) -> int:
        """The greatest length."""
        return self._ragged.longest

    def _get_min_seqlen(self) -> int:
        """The least length."""
        return self._ragged.shortest


class StridedTensor(NestedTensor):
    """A tensor of the layout `strided`: components of any shapes with the same number of dimensions."""

    _sizes: tuple[tuple[int, ...], ...]
    _parts = ("_value", "_sizes")
    layout = property(lambda self: _formats.strided, doc="`strided`.")

    @property
    def shape(self) -> NoReturn:
        """RuntimeError: sizes differ from component to component."""
        raise RuntimeError(
            "NestedTensorImpl doesn't support sizes; expected a call of size(dim) for a regular dimension"
        )

    def size(self, dim: Any = None) -> Any:
        """The size of a dimension. RuntimeError: it is not the same in all components."""
        if dim is None:
            return self.shape
        dim = _protocols.dimension(self, dim)
        if dim == 0:
            return len(self._sizes)
        found = {size[dim - 1] for size in self._sizes}
        if len(found) > 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim: Any = None) -> NoReturn:
        """RuntimeError: strides differ from component to component."""
        raise RuntimeError("NestedTensorImpl doesn't support strides")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True: components lie one after another."""
        return True

    def _nested_tensor_strides(self) -> Tensor:
        """The strides of the components: int64 of shape (batch, dimensions - 1)."""
        from ._shape import unbind

        return _C.tensor([list(part.stride()) for part in unbind(self)], dtype=_C.int64)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        """Where each component begins among the values: int64 of shape (batch)."""
        ends = itertools.accumulate(map(math.prod, self._sizes), initial=0)
        return _C.tensor(list(ends)[:-1], dtype=_C.int64)

    def _nested_tensor_size(self) -> Tensor:
        """The shapes of the components: int64 of shape (batch, dimensions - 1)."""
        return _C.tensor([list(size) for size in self._sizes], dtype=_C.int64)

    def _same(self, other) -> bool:
        return isinstance(other, StridedTensor) and self._sizes == other._sizes

    def _described(self) -> str:
        return f"components of shapes {list(self._sizes)}"
