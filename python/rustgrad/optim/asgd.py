"""Averaged stochastic gradient descent (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992)."""

from __future__ import annotations

from .._base import float32, ops, tensor, zeros_like
from .._C import Tensor
from ._rules import direction
from .adam import as_real
from .optimizer import Optimizer, ParamsT, check_lr, check_not_negative, numbers, private_names, step_tensor, to_scalar

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Descent with a falling rate; `state[p]["ax"]` is the mean of the parameter from step `t0` on.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), lambd (decay), alpha (power of the rate's fall), t0, weight_decay (float).
        maximize, differentiable (bool).

    Raises:
        ValueError: a negative argument.
    """

    _counts = ("step", "eta", "mu")
    _step_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _fused = ops["_fused_asgd_"]
    _fused_state = {"ax": None, "mu": None, "eta": None, "step": None}
    _fused_options = numbers("lr", "lambd", "alpha", "t0", "weight_decay")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["eta"] = tensor(float(group["lr"]), dtype=float32)
        state["mu"] = step_tensor(1.0)
        state["ax"] = zeros_like(param)

    def _update(self, group, param, grad, state):
        lr, lambd = float(to_scalar(group["lr"])), group["lambd"]
        step = state["step"].add_(1).item()
        average = state["ax"]
        if param.is_complex():
            param, grad, average = as_real(param, grad, average)
        grad = direction(group, param, grad)
        rate, share = state["eta"].item(), state["mu"].item()
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
        if share == 1:
            average.copy_(param)
        else:
            average.add_((param - average) * share)
        state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))


__getattr__ = private_names(__name__)
