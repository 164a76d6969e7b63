"""The ragged dimension: where each sequence lies among the values, and the size that stands for all their lengths.

Tensors made with the same `offsets` share one `Ragged`, so that "the same lengths" is a comparison of identities, and what is computed
from offsets (the sequence of each element, its place there) is computed once.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Size, Tensor, ops
from .._checks import SymInt
from ..autograd.grad_mode import inference_mode, no_grad

_numbers = itertools.count(1)
# By the identities of offsets and lengths, which a `Ragged` keeps alive.
_known: weakref.WeakValueDictionary[tuple[int, int], Ragged] = weakref.WeakValueDictionary()


def _kept(compute: Callable[[Any], Tensor]) -> functools.cached_property[Tensor]:
    """A cached property: first asked for in inference mode, perhaps, and then saved for a gradient."""

    def ordinary(self):
        with inference_mode(False), no_grad():
            return compute(self)

    ordinary.__doc__ = compute.__doc__
    return functools.cached_property(ordinary)


class Ragged:
    """Where the sequences of a batch lie along a dimension.

    Args:
        offsets (Tensor): integers of shape (batch + 1): where each sequence begins; without `lengths`, where the one before ends.
        lengths (Tensor, optional): of shape (batch): the length of each sequence; there are then gaps.
        shortest, longest (int, optional): the extreme lengths, where they are known.
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None, shortest: int | None, longest: int | None) -> None:
        self.offsets, self.lengths, self.number = offsets, lengths, next(_numbers)
        self.batch = offsets.shape[0] - 1
        self.size = NestedInt(self)
        self.given = (shortest, longest)
        self._flat: tuple[int, Tensor] | None = None

    @property
    def starts(self) -> list[int]:
        """Where each sequence begins."""
        return self.bounds[:-1]

    @functools.cached_property
    def bounds(self) -> list[int]:
        """The offsets as numbers. RuntimeError: they do not ascend from zero or more."""
        ends = self.offsets.tolist()
        if any(a > b for a, b in zip(ends, ends[1:], strict=False)) or ends[0] < 0:
            raise RuntimeError(f"offsets: expected ascending integers from 0 on, got {ends}")
        return ends

    @functools.cached_property
    def counts(self) -> list[int]:
        """The length of each sequence. RuntimeError: one is negative."""
        if self.lengths is None:
            return [b - a for a, b in zip(self.bounds, self.bounds[1:], strict=False)]
        counts = self.lengths.tolist()
        if any(n < 0 for n in counts):
            raise RuntimeError(f"lengths: expected no negative integers, got {counts}")
        return counts

    @property
    def longest(self) -> int:
        """The greatest length: the one given, or that of the offsets."""
        return max(self.counts, default=0) if self.given[1] is None else self.given[1]

    @property
    def shortest(self) -> int:
        """The least length."""
        return min(self.counts, default=0) if self.given[0] is None else self.given[0]

    def covers(self, total: int) -> bool:
        """Whether sequences fill a dimension of that size without gaps. RuntimeError: they reach beyond it."""
        if self.lengths is None:
            first, end = self.bounds[0], self.bounds[-1]
            if end > total:
                raise RuntimeError(f"offsets: expected at most the size {total} of the values, got {end}")
            return first == 0 and end == total
        if max((a + n for a, n in zip(self.starts, self.counts, strict=True)), default=0) > total:
            raise RuntimeError(f"offsets and lengths: a sequence ends beyond the size {total} of the values")
        return False

    @_kept
    def lengths_tensor(self) -> Tensor:
        """The lengths as an int64 tensor of shape (batch)."""
        return (self.offsets.diff() if self.lengths is None else self.lengths).detach().to(_C.int64)

    @_kept
    def segment(self) -> Tensor:
        """The sequence of each element, in order: int64 of shape (elements)."""
        every = ops["arange"](self.batch, device=self.offsets.device)
        return ops["repeat_interleave"](every, self.lengths_tensor, output_size=sum(self.counts))

    @_kept
    def place(self) -> Tensor:
        """The place of each element in its sequence: int64 of shape (elements)."""
        ends = self.lengths_tensor.cumsum(0)
        at = ops["arange"](sum(self.counts), device=self.offsets.device)
        return at - (ends - self.lengths_tensor).index_select(0, self.segment)

    @_kept
    def index(self) -> Tensor:
        """The place of each element among the values, gaps included: int64 of shape (elements)."""
        starts = self.offsets[:-1].detach().to(_C.int64)
        return starts.index_select(0, self.segment) + self.place

    def flat(self, width: int) -> Tensor:
        """The place of each element in a block of (batch, width), row by row. RuntimeError: a sequence is longer."""
        if width < max(self.counts, default=0):
            raise RuntimeError(f"expected a width of at least the longest sequence, {max(self.counts)}, got {width}")
        if self._flat is None or self._flat[0] != width:
            with inference_mode(False):
                self._flat = (width, self.segment * width + self.place)
        return self._flat[1]

    def moved(self, device: Any) -> Ragged:
        """The same lengths on another device, with the same size."""
        if self.offsets.device == device:
            return self
        lengths = None if self.lengths is None else self.lengths.to(device)
        made = ragged_of(self.offsets.to(device), lengths, *self.given)
        made.number, made.size = self.number, self.size
        return made


class NestedInt(SymInt):
    """The size of a ragged dimension, such as `j1`: equal for tensors with the same offsets, and no number.

    It is 2 or more as far as comparisons go; others with numbers are errors. It can be multiplied by an integer.
    """

    def __new__(cls, ragged: Ragged, factor: int = 1) -> NestedInt:
        self = object.__new__(cls)
        self._number, self._factor = ragged.number, factor
        return self

    def _order(self, other, name, least, otherwise):
        """What a comparison with a number says: known below `least`, else not; of multiples of one size by their factors."""
        if isinstance(other, NestedInt) and other._number == self._number:
            return getattr(self._factor, f"__{name}__")(other._factor)
        if isinstance(other, int) and other <= least:
            return otherwise
        if isinstance(other, (int, NestedInt)):
            raise ValueError(f"{name}: relation is indeterminate")
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and (self._number, self._factor) == (other._number, other._factor)

    def __hash__(self) -> int:
        return hash((self._number, self._factor))

    def __ge__(self, other: Any) -> bool:
        return self._order(other, "ge", 2, True)

    def __gt__(self, other: Any) -> bool:
        return self._order(other, "gt", 1, True)

    def __lt__(self, other: Any) -> bool:
        return self._order(other, "lt", 2, False)

    def __le__(self, other: Any) -> bool:
        return self._order(other, "le", 1, False)

    def __mul__(self, other: Any) -> NestedInt:
        if isinstance(other, NestedInt):
            raise ValueError("mul: expected an integer as the factor of a ragged size, got another ragged size")
        if not isinstance(other, int):
            return NotImplemented
        made = object.__new__(NestedInt)
        made._number, made._factor = self._number, self._factor * other
        return made

    __rmul__ = __mul__

    def __index__(self) -> int:
        raise TypeError(f"{self}: the size of a ragged dimension is not one number. Hint: see offsets()")

    is_ragged = True  # what `Size` asks

    def __deepcopy__(self, memo: Any) -> NestedInt:
        return self

    def __copy__(self) -> NestedInt:
        return self

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"


class Sizes:
    """The ragged size of a tensor of offsets, or of lengths where there are some: `sizes[moved] = sizes[offsets]` says that both
    stand for the same lengths."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[weakref.ref[Tensor], NestedInt]] = {}

    def get(self, source: Tensor) -> NestedInt | None:
        """What was said of a tensor."""
        found = self._said.get(id(source))
        return found[1] if found and found[0]() is source else None

    def __getitem__(self, source: Tensor) -> NestedInt:
        if (said := self.get(source)) is not None:
            return said
        for ragged in [*_known.values()]:
            if source is (ragged.offsets if ragged.lengths is None else ragged.lengths):
                return ragged.size
        raise KeyError(source)

    def __setitem__(self, source: Tensor, size: NestedInt) -> None:
        key = id(source)
        self._said[key] = (weakref.ref(source, lambda _: self._said.pop(key, None)), size)  # type: ignore[misc]


SIZES = Sizes()


def ragged_of(
    offsets: Tensor, lengths: Tensor | None = None, shortest: int | None = None, longest: int | None = None
) -> Ragged:
    """The `Ragged` of these offsets and lengths: one for the same objects."""
    key = (id(offsets), id(lengths))
    found = _known.get(key)
    if found is None:
        found = _known[key] = Ragged(offsets, lengths, shortest, longest)
        if (size := SIZES.get(offsets if lengths is None else lengths)) is not None:
            found.number, found.size = size._number, size
    elif found.given == (None, None):
        found.given = (shortest, longest)
    return found


def size_with(*sizes: Any) -> Size:
    """A `Size` of which an item may be ragged."""
    return tuple.__new__(Size, sizes)
