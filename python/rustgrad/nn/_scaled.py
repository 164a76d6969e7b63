"""Products of eight-bit floats that were divided by scales."""

from __future__ import annotations

from .._base import Tensor, dtype, float32, mm
from ..overrides import overridable

__all__ = ["_scaled_mm"]


def _is_float8(x):
    return x.dtype.is_floating_point and x.element_size() == 1


def _check(a, b, scale_a, scale_b):
    for name, m in (("mat1", a), ("mat2", b)):
        if m.dim() != 2:
            raise RuntimeError(f"_scaled_mm: {name} must be a matrix, got {m.dim()}D")
    if a.shape[1] != b.shape[0]:
        sizes = f"{a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]}"
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({sizes})")
    floats = scale_a.dtype == scale_b.dtype == float32
    whole = scale_a.numel() == scale_b.numel() == 1
    by_row = tuple(scale_a.shape) == (a.shape[0], 1) and tuple(scale_b.shape) == (1, b.shape[1])
    if not (_is_float8(a) and _is_float8(b) and floats and (whole or by_row)):
        raise ValueError(
            f"Invalid scaling configuration: expected float8 matrices and float32 scales, of one element each or of shapes "
            f"({a.shape[0]}, 1) and (1, {b.shape[1]}), got {a.dtype}, {b.dtype} and scales of {scale_a.dtype} "
            f"{tuple(scale_a.shape)} and {scale_b.dtype} {tuple(scale_b.shape)}."
        )


@overridable
def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """`(input @ mat2) * scale_a * scale_b + bias` of eight-bit floats, computed in float32.

    Args:
        input, mat2: `(M, K)` and `(K, N)`, of float8 dtypes.
        scale_a, scale_b: float32, of one element each, or `(M, 1)` and `(1, N)`.
        bias: `(N,)`.
        scale_result: not used on a CPU, as in PyTorch.
        out_dtype: the dtype of the result, that of `input` if None.
        use_fast_accum: sums of fewer bits on some hardware; not used.

    Raises:
        RuntimeError: sizes that do not fit. ValueError: other dtypes, or scales of other shapes.
    """
    _check(input, mat2, scale_a, scale_b)
    product = mm(input.float(), mat2.float()) * (scale_a.reshape(-1, 1) * scale_b.reshape(1, -1))
    if bias is not None:
        product = product + bias.float()
    return product.to(input.dtype if out_dtype is None else out_dtype)
