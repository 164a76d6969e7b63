"""Adamax (Kingma and Ba, arXiv:1412.6980, section 7.1): Adam with the infinity norm."""

from __future__ import annotations

from .._base import Tensor, maximum, ops, zeros_like
from ._rules import check_adaptive, descend, direction
from .adam import as_real
from .optimizer import Optimizer, ParamsT, numbers, private_names, step_tensor, to_scalar

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """The mean of the gradients over the greatest of them, which decays.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), betas (pair), eps, weight_decay (float).
        maximize, differentiable (bool).

    Raises:
        ValueError: an argument out of its range.
    """

    _counts = ("step",)
    _step_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _fused = ops["_fused_adamax_"]
    _fused_state = {"exp_avg": None, "exp_inf": None, "step": None}
    _fused_options = numbers("lr", "eps", "weight_decay", betas=("beta1", "beta2"))

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["exp_avg"] = zeros_like(param)
        state["exp_inf"] = zeros_like(param)

    def _update(self, group, param, grad, state):
        beta1, beta2 = group["betas"]
        step = state["step"].add_(1).item()
        grad = direction(group, param, grad)
        mean, greatest = state["exp_avg"], state["exp_inf"]
        if param.is_complex():
            param, grad, mean, greatest = as_real(param, grad, mean, greatest)
        mean.lerp_(grad, 1 - beta1)
        greatest.copy_(maximum(greatest * beta2, grad.abs() + group["eps"]))
        descend(param, mean / greatest.clone(), to_scalar(group["lr"]) / (1 - beta1**step))


__getattr__ = private_names(__name__)
