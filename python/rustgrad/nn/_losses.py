"""Losses whose arguments need handling in Python (warnings about sizes), or that are written with other ops."""

from __future__ import annotations

import warnings

from .._base import clamp, exp, log, ops, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor

_mse_loss = ops["nn.functional.mse_loss"]
_l1_loss = ops["nn.functional.l1_loss"]
_smooth_l1_loss = ops["nn.functional.smooth_l1_loss"]
_huber_loss = ops["nn.functional.huber_loss"]
_logsigmoid = ops["nn.functional.logsigmoid"]


def legacy_reduction(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The `reduction` that the legacy arguments mean, with the deprecation warning."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def _reduction(reduction, size_average, reduce):
    if size_average is not None or reduce is not None:
        return legacy_reduction(size_average, reduce)
    return reduction


def _reduce(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _weighted(loss, weight, reduction):
    if weight.size() != loss.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduce(loss, reduction)


def _warn_size(input, target):
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean of (input - target) ** 2; shapes broadcast, with a warning if they differ."""
    _warn_size(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if weight is None:
        return _mse_loss(input, target, reduction=reduction)
    return _weighted(_mse_loss(input, target, reduction="none"), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean of |input - target|; shapes broadcast, with a warning if they differ."""
    _warn_size(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if weight is None:
        return _l1_loss(input, target, reduction=reduction)
    return _weighted(_l1_loss(input, target, reduction="none"), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """0.5 * d ** 2 / beta where d = |input - target| < beta, else d - 0.5 * beta."""
    _warn_size(input, target)
    return _smooth_l1_loss(input, target, reduction=_reduction(reduction, size_average, reduce), beta=beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """0.5 * d ** 2 where d = |input - target| <= delta, else delta * (d - 0.5 * delta)."""
    _warn_size(input, target)
    weighting = {} if weight is None else {"weight": weight}
    return _huber_loss(input, target, reduction=reduction, delta=delta, **weighting)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(x) - t * x (or x - t * log(x + eps) if not `log_input`), with Stirling's term if `full`."""
    reduction = _reduction(reduction, size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        stirling = target * log(target) - target + 0.5 * log(6.283185307179586 * target)
        loss = loss + where(target > 1, stirling, 0.0)
    return _reduce(loss, reduction)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input)) for targets of -1 and 1."""
    return _reduce(-_logsigmoid(target * input), _reduction(reduction, size_average, reduce))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    loss = where(target != 1, clamp(margin - input, min=0), 0.0) + where(target != -1, input, 0.0)
    return _reduce(loss, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = _reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduce(clamp(-target * (input1 - input2) + float(margin), min=0), reduction)
