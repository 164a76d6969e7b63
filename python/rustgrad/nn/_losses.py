"""Losses that take Python objects: a distance function, options of working in chunks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from .._base import cat, clamp_min, int64, minimum, ops
from .._C import Tensor
from ..overrides import overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .modules.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = ["linear_cross_entropy", "triplet_margin_with_distance_loss"]


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance function of two tensors; `pairwise_distance` by default.

    Raises:
        ValueError: `margin` is not positive, or `reduction` unknown.
        RuntimeError: the tensors differ in their number of dimensions.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = ops["pairwise_distance"] if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return _reduced(clamp_min(margin + near - far, 0), reduction)


def _reduced(values, reduction):
    return values if reduction == "none" else values.mean() if reduction == "mean" else values.sum()


@overridable
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    With `options` it works in chunks of rows, whose logits are computed again for the gradient: all logits are
    never held at once. Shapes: input `(N, D)` or `(D)`, `linear_weight` `(C, *, D)`, `linear_bias` `(C, *)`,
    target `(N, *)` or probabilities `(N, C, *)`.

    Raises:
        RuntimeError: shapes that do not fit, or `ignore_index` with probabilities.
    """
    logits_shape = _check_linear(input, linear_weight, linear_bias)
    if target.shape == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None:
        if _chunks_apply(input, linear_weight, target, reduction, label_smoothing):
            return _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64 (or a probability target with dtype matching input and "
            "requires_grad == False), out_features == ().",
            stacklevel=3,
        )
    rows = math.prod(linear_weight.shape[:-1])
    bias = None if linear_bias is None else linear_bias.reshape(rows)
    logits = ops["nn.functional.linear"](input, linear_weight.reshape(rows, linear_weight.shape[-1]), bias)
    return ops["nn.functional.cross_entropy"](
        logits.reshape(logits_shape),
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def _check_linear(input, linear_weight, linear_bias):
    """The shape of the logits."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    outer = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outer:
        raise RuntimeError(f"expected linear_bias shape {outer}, got {tuple(linear_bias.shape)}")
    if len(outer) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    return (*input.shape[:-1], *outer)


def _chunks_apply(input, linear_weight, target, reduction, label_smoothing):
    classes = target.shape == (*input.shape[:-1], linear_weight.shape[0])
    probabilities = classes and target.dtype == input.dtype and not target.requires_grad
    plain = reduction in ("mean", "sum", "none") and label_smoothing == 0 and linear_weight.dim() == 2
    return plain and (target.dtype == int64 or probabilities)


def _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options):
    batched = input.dim() == 2
    if not batched:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    rows = options._rows(input.shape[0], *reversed(linear_weight.shape))
    how = 0 if reduction == "none" else 2
    chunk = ops["_linear_cross_entropy_chunk"]
    losses = [
        chunk(x, linear_weight, t, linear_bias, weight, how, ignore_index)
        for x, t in zip(input.split(rows), target.split(rows), strict=True)
    ]
    if reduction == "none":
        loss = cat(losses)
        return loss if batched else loss.squeeze(0)
    total = sum(losses[1:], losses[0])
    if reduction == "sum":
        return total
    if target.dim() == 2:
        return total / input.shape[0]
    kept = target != ignore_index
    counts = kept.to(total.dtype) if weight is None else weight[target.where(kept, 0)] * kept
    return total / counts.sum()
