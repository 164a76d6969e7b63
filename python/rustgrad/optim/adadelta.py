"""Adadelta (Zeiler, arXiv:1212.5701)."""

from __future__ import annotations

from .._base import Tensor, ops, zeros_like
from ._rules import descend, direction
from .adam import as_real
from .optimizer import Optimizer, ParamsT, check_lr, check_not_negative, numbers, private_names, step_tensor, to_scalar

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """The gradient times the root of the mean square of changes over that of gradients.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), rho (the averages' factor), eps, weight_decay (float).
        maximize, differentiable (bool).

    Raises:
        ValueError: an argument out of its range.
    """

    _counts = ("step",)
    _step_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _fused = ops["_fused_adadelta_"]
    _fused_state = {"square_avg": None, "acc_delta": None}
    _fused_options = numbers("lr", "rho", "eps", "weight_decay")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["square_avg"] = zeros_like(param)
        state["acc_delta"] = zeros_like(param)

    def _update(self, group, param, grad, state):
        rho, eps = group["rho"], group["eps"]
        state["step"].add_(1)
        grad = direction(group, param, grad)
        squares, changes = state["square_avg"], state["acc_delta"]
        if param.is_complex():
            param, grad, squares, changes = as_real(param, grad, squares, changes)
        squares.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        change = changes.add(eps).sqrt() / squares.add(eps).sqrt() * grad
        changes.mul_(rho).addcmul_(change, change, value=1 - rho)
        descend(param, change, to_scalar(group["lr"]))


__getattr__ = private_names(__name__)
