"""What update rules share: the direction of descent, the step along it, checks of options."""

from __future__ import annotations

from typing import Any

from .._base import Tensor
from .optimizer import check_lr, check_not_negative


def direction(group: dict[str, Any], param: Tensor, grad: Tensor) -> Tensor:
    """The gradient, negated where the group ascends, with the decay of weights added."""
    if group["maximize"]:
        grad = -grad
    decay = group.get("weight_decay", 0)
    if decay == 0 or group.get("decoupled_weight_decay"):
        return grad
    return grad.add(param, alpha=decay)


def decay_weights(group: dict[str, Any], param: Tensor, lr: Any) -> None:
    """Decays the parameter itself where the group says so."""
    if group["weight_decay"] != 0 and group["decoupled_weight_decay"]:
        param.mul_(1 - lr * group["weight_decay"])


def descend(param: Tensor, change: Tensor, lr: Any) -> None:
    """`param -= lr * change`; `lr` may be a tensor that requires grad."""
    if isinstance(lr, Tensor):
        param.add_(change * -lr)
    else:
        param.add_(change, alpha=-lr)


def check_adaptive(lr: Any, betas: Any, eps: float, **named: float) -> None:
    """ValueError where an option of a rule with two running averages is out of its range."""
    check_lr(lr)
    if not 0.0 <= eps:
        raise ValueError(f"Invalid epsilon value: {eps}")
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    check_not_negative(**named)
