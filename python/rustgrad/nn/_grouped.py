"""Products of groups of rows, each with a matrix of its own (the experts of a mixture)."""

from __future__ import annotations

from .._base import Tensor, bmm, cat, dtype, ops, stack
from ..overrides import overridable

__all__ = ["grouped_mm"]

pad = ops["nn.functional.pad"]


def _check(mat_a, mat_b, offs):
    shapes = f"got {list(mat_a.shape)} and {list(mat_b.shape)}"
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(f"grouped_mm: expected tensors with 2 or 3 dimensions, {shapes}")
    if mat_a.dtype != mat_b.dtype or not mat_a.dtype.is_floating_point:
        raise RuntimeError(f"grouped_mm: expected one floating dtype, got {mat_a.dtype} and {mat_b.dtype}")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(f"grouped_mm: contraction dimension of mat_a and mat_b must match, {shapes}")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    groups = {m.shape[0] for m in (mat_a, mat_b) if m.dim() == 3} | ({offs.numel()} if offs is not None else set())
    if len(groups) != 1:
        raise RuntimeError(f"grouped_mm: expected one number of groups, got {sorted(groups)} in operands and offs")


def _ranges(offs, size):
    """The groups that end at `offs` of a dimension of `size`."""
    if offs.dim() != 1 or offs.dtype.is_floating_point or offs.dtype.is_complex:
        raise RuntimeError(f"grouped_mm: offs must be 1D integers, got {offs.dim()}D {offs.dtype}")
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    if any(start > end for start, end in zip(starts, ends, strict=True)) or (ends and ends[-1] > size):
        raise RuntimeError(f"grouped_mm: offs must increase to at most {size}, got {ends}")
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]


def _filled(pieces, size, dim):
    """The pieces side by side, with zeros after the last group up to `size`."""
    joined = cat(pieces, dim)
    rest = size - joined.shape[dim]
    return pad(joined, [0, 0] * (1 - dim) + [0, rest]) if rest else joined


@overridable
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """One matrix product for each group `g`; group `g` of a 2D operand is what lies between `offs[g - 1]` and `offs[g]`.

    Shapes, with G groups:

    - `mat_a` `(M, K)`, `mat_b` `(G, K, N)`: groups of rows, result `(M, N)`; rows after the last group are zero.
    - `mat_a` `(G, M, K)`, `mat_b` `(K, N)`: groups of columns, result `(M, N)`.
    - `mat_a` `(M, K)`, `mat_b` `(K, N)`: groups of what is contracted, result `(G, M, N)`.
    - `mat_a` `(G, M, K)`, `mat_b` `(G, K, N)`: `bmm`, without `offs`.

    Args:
        offs (Tensor): `(G)`, integers that do not decrease: where each group ends.
        bias (Tensor): added to the result, to whose shape it broadcasts.
        out_dtype (dtype): of the result; that of the operands by default.

    Raises:
        RuntimeError: shapes, dtypes or offsets that do not fit.
    """
    _check(mat_a, mat_b, offs)
    if offs is None:
        result = bmm(mat_a, mat_b)
    elif mat_b.dim() == 3:
        parts = enumerate(_ranges(offs, mat_a.shape[0]))
        result = _filled([mat_a[rows] @ mat_b[g] for g, rows in parts], mat_a.shape[0], 0)
    elif mat_a.dim() == 3:
        parts = enumerate(_ranges(offs, mat_b.shape[1]))
        result = _filled([mat_a[g] @ mat_b[:, columns] for g, columns in parts], mat_b.shape[1], 1)
    else:
        result = stack([mat_a[:, part] @ mat_b[part] for part in _ranges(offs, mat_b.shape[0])])
    result = result if bias is None else result + bias
    return result if out_dtype is None else result.to(out_dtype)


_grouped_mm = grouped_mm  # its name among the functions of tensors
