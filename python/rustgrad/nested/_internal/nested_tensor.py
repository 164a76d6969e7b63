"""The class of tensors of the layout `jagged`, and functions that make them, under the names that programs import."""

from __future__ import annotations

from typing import Any

from ..._C import Tensor
from .. import _construct, _shape
from .._ragged import SIZES as _tensor_symint_registry  # noqa: F401
from .._ragged import ragged_of
from .._tensor import JaggedTensor as NestedTensor
from .._tensor import jagged

__all__ = [
    "NestedTensor",
    "buffer_from_jagged",
    "jagged_from_list",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]


def buffer_from_jagged(jagged: Any) -> Tensor:
    """The values of a nested tensor, with their history."""
    return jagged.values()


def jagged_from_list(
    tensors: list[Tensor], offsets: Tensor | None, dtype: Any = None, device: Any = None
) -> tuple[Tensor, Tensor]:
    """A nested tensor of some tensors with their history, and its offsets: those given, or new ones."""
    made = _construct.jagged_from_list(tensors, dtype, device)
    if offsets is not None:
        made = jagged(made._value, ragged_of(offsets, None, *made._ragged.given), made._ragged_idx)
    return made, made.offsets()


def nested_view_from_values_offsets(
    values: Tensor,
    offsets: Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """`nested_tensor_from_jagged` without lengths."""
    return _construct.nested_tensor_from_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """`nested_tensor_from_jagged`."""
    return _construct.nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def nested_from_padded(
    padded: Tensor,
    offsets: Tensor,
    ragged_idx: int = 1,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
    sum_S: int | None = None,
) -> Tensor:
    """The sequences of a padded dense tensor of shape (batch, ..., width, ...), whose lengths are those of `offsets`."""
    ragged = ragged_of(offsets, None, min_seqlen, max_seqlen)
    rows = _shape.unpadded(padded, ragged, ragged_idx)
    return jagged(rows.movedim(0, ragged_idx - 1), ragged, ragged_idx)
