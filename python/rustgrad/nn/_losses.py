"""Loss functions: PyTorch's arguments (the legacy `size_average` and `reduce` included) over the table's ops.

A loss that the table has is called there; the others are written with other ops.
"""

import warnings

from .._base import clamp, exp, log, log1p, ops, where
from ._activations import logsigmoid


def legacy_reduction(size_average, reduce, emit_warning=True):
    """The `reduction` that the legacy arguments mean, with the deprecation warning."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
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


def _warn_size(input, target):
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


_cross_entropy = ops["nn.functional.cross_entropy"]
_nll_loss = ops["nn.functional.nll_loss"]
_native = {name[14:]: op for name, op in ops.items() if name.startswith("nn.functional.")}


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """Cross entropy between logits and class indices or class probabilities.

    Args:
        input: logits `(C)`, `(N, C)` or `(N, C, d1, ...)`.
        target: indices `()`, `(N)`, `(N, d1, ...)`, or probabilities of the input's shape.
        weight: `(C)`, a weight for each class.
        ignore_index (int): targets of this index do not count.
        reduction (str): "none", "mean" or "sum".
        label_smoothing (float): in [0, 1], the share of the uniform distribution in the target.
    """
    reduction = _reduction(reduction, size_average, reduce)
    return _cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log likelihood: minus the target's entry of `input` (log probabilities); shapes as `cross_entropy`."""
    reduction = _reduction(reduction, size_average, reduce)
    return _nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Mean of (input - target) ** 2; shapes broadcast, with a warning if they differ."""
    _warn_size(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if weight is None and "mse_loss" in _native:
        return _native["mse_loss"](input, target, reduction=reduction)
    return _weighted((input - target) ** 2, weight, reduction)


def _weighted(loss, weight, reduction):
    if weight is None:
        return _reduce(loss, reduction)
    if weight.size() != loss.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduce(loss, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Mean of |input - target|; shapes broadcast, with a warning if they differ."""
    _warn_size(input, target)
    return _weighted((input - target).abs(), weight, _reduction(reduction, size_average, reduce))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """0.5 * d ** 2 / beta where d = |input - target| < beta, else d - 0.5 * beta."""
    _warn_size(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    distance = (input - target).abs()
    return _reduce(where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """0.5 * d ** 2 where d = |input - target| <= delta, else delta * (d - 0.5 * delta)."""
    _warn_size(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    distance = (input - target).abs()
    loss = where(distance <= delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta)
    return _weighted(loss, weight, reduction)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x; the logarithms are at least -100.

    Raises:
        ValueError: the shapes differ.
    """
    reduction = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    loss = (target - 1) * clamp(log1p(-input), min=-100) - target * clamp(log(input), min=-100)
    return _reduce(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Binary cross entropy of sigmoid(input), stable for large logits; `pos_weight` multiplies the positive term.

    Raises:
        ValueError: the shapes differ.
    """
    reduction = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    positive = logsigmoid(input)
    if pos_weight is not None:
        positive = positive * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - positive
    return _reduce(loss if weight is None else loss * weight, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input), where `input` holds log probabilities; "batchmean" divides by the batch."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if log_target:
        loss = exp(target) * (target - input)
    else:
        # 0 * log(0) counts as 0.
        loss = target * log(where(target == 0, 1.0, target)) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss.sum()
    return _reduce(loss, reduction)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """exp(x) - t * x (or x - t * log(x + eps) if not `log_input`), with Stirling's term if `full`."""
    reduction = _reduction(reduction, size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        stirling = target * log(target) - target + 0.5 * log(6.283185307179586 * target)
        loss = loss + where(target > 1, stirling, 0.0)
    return _reduce(loss, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * input)) for targets of -1 and 1."""
    return _reduce(-logsigmoid(target * input), _reduction(reduction, size_average, reduce))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """x where the target is 1, max(0, margin - x) where it is -1."""
    loss = where(target != 1, clamp(margin - input, min=0), 0.0) + where(target != -1, input, 0.0)
    return _reduce(loss, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = _reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduce(clamp(-target * (input1 - input2) + margin, min=0), reduction)
