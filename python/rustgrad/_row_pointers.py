"""Row pointers of sorted indices, which libraries of graphs compute by PyTorch's private names."""

from __future__ import annotations

from ._base import Tensor, arange, int32, int64, repeat_interleave, searchsorted, stack

__all__: list[str] = []


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each row begins among sorted row indices: `size + 1` positions."""
    if input.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    rows = arange(size + 1, dtype=input.dtype, device=input.device)
    return searchsorted(input.contiguous(), rows, out_int32=out_int32)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """(2, n): the row and column of each element, from where the rows begin; columns first if `transpose`."""
    rows = arange(crow_indices.shape[-1] - 1, device=crow_indices.device)
    dtype = int32 if out_int32 else int64
    pairs = [repeat_interleave(rows, crow_indices.diff()).to(dtype), col_indices.to(dtype)]
    return stack(pairs[::-1] if transpose else pairs)
