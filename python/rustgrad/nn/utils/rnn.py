"""Sequences of several lengths: padded to one tensor, or packed step by step without padding."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any

from ... import _base
from ..._base import Tensor, arange, full, index_select, ops, sort
from ..._typing import Self

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_pad = ops.get("nn.utils.rnn.pad_sequence")
PackedSequence_ = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(PackedSequence_):
    """The steps of several sequences, from the longest to the shortest: all first steps, all second steps, ...

    Attributes:
        data: `(sum of lengths, *)`.
        batch_sizes: number of sequences with a first step, a second step, ...; on the CPU.
        sorted_indices, unsorted_indices: the sort permutation by length and its inverse; None if already sorted.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They "
                "should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and casts as `Tensor.to` does; the lengths stay on the CPU."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = (None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *orders)

    def pin_memory(self) -> Self:
        """The sequences themselves: memory need not be pinned."""
        return self

    def cpu(self) -> Self:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """On the GPU, under `python -m rustgrad`; otherwise as for a tensor."""
        return self.to(self.data.new_empty(0).cuda(*args, **kwargs).device)

    def double(self) -> Self:
        """As float64."""
        return self.to(dtype=_base.float64)

    def float(self) -> Self:
        """As float32."""
        return self.to(dtype=_base.float32)

    def half(self) -> Self:
        """As float16."""
        return self.to(dtype=_base.float16)

    def long(self) -> Self:
        """As int64."""
        return self.to(dtype=_base.int64)

    def int(self) -> Self:
        """As int32."""
        return self.to(dtype=_base.int32)

    def short(self) -> Self:
        """As int16."""
        return self.to(dtype=_base.int16)

    def char(self) -> Self:
        """As int8."""
        return self.to(dtype=_base.int8)

    def byte(self) -> Self:
        """As uint8."""
        return self.to(dtype=_base.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data are in pinned memory: never."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`; None of None."""
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return permutation.scatter(0, permutation, places)


def _steps(lengths, total):
    """`(total, B)`: whether a sequence has a step."""
    return arange(total).unsqueeze(1) < lengths


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input (Tensor): `(T, B, *)`, or `(B, T, *)` if `batch_first`.
        lengths (Tensor or list of int): the length of each sequence, between 1 and T.
        enforce_sorted (bool): whether lengths must be in descending order; otherwise they are sorted.

    Raises:
        RuntimeError: the lengths are not B numbers between 1 and T, or not sorted.
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=_base.int64)
        if lengths.device.type != "cpu":
            raise RuntimeError(
                "'lengths' argument should be a 1D CPU int64 tensor, but got "
                f"{lengths.dim()}D {lengths.device} Long tensor"
            )
    else:
        lengths = _base.tensor(list(lengths), dtype=_base.int64)
    order = None
    if not enforce_sorted:
        lengths, order = sort(lengths, descending=True)
        order = order.to(input.device)
        input = index_select(input, 0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    _check_lengths(input, lengths)
    mask = _steps(lengths, int(lengths[0]))
    return PackedSequence(input[: mask.shape[0]][mask.to(input.device)], mask.sum(1), order, None)


def _check_lengths(input, lengths):
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    batch = input.size(1)
    if lengths.dim() != 1 or lengths.numel() != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} (batch_size={batch})"
        )
    if (lengths <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (lengths[1:] > lengths[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
            "not need ONNX exportability."
        )
    if int(lengths[0]) > input.size(0):
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths of at most {input.size(0)} steps, got {int(lengths[0])}"
        )


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded sequences `(T, B, *)` or `(B, T, *)`, their lengths) of a `PackedSequence`.

    Args:
        padding_value (float): the value after the end of a sequence.
        total_length (int): T, if not the length of the longest.

    Raises:
        ValueError: `total_length` is less than the longest sequence.
    """
    data, sizes, _, order = sequence
    longest, batch = sizes.numel(), int(sizes[0])
    total = longest if total_length is None else total_length
    if total < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    lengths = (arange(batch).unsqueeze(1) < sizes).sum(1)
    mask = _steps(lengths, total).to(data.device)
    padded = full((total, batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded[mask] = data
    if batch_first:
        padded = padded.transpose(0, 1)
    if order is None:
        return padded, lengths
    return index_select(padded, 0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences `(L_i, *)`, padded to the longest, as one tensor `(L, B, *)`, or `(B, L, *)` if `batch_first`.

    Args:
        sequences (iterable of tensors).
        padding_value (float), padding_side (str): the value and the side ("right" or "left") of the padding.

    Raises:
        RuntimeError: there are none, or their sizes differ beyond the first dimension.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    return _pad(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` padded, as a list."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences `(L_i, *)`."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of sequences in a `PackedSequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def __dir__() -> list[str]:
    return __all__
