"""RAdam (Liu et al., arXiv:1908.03265): Adam without its variance while that cannot be estimated yet."""

from __future__ import annotations

from .._base import Tensor, ops, zeros_like
from ._rules import check_adaptive, decay_weights, descend, direction
from .adam import as_real
from .optimizer import Optimizer, ParamsT, numbers, private_names, step_tensor, to_scalar

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """Adam's step, rectified; in the first steps the mean of the gradients alone.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), betas (pair), eps, weight_decay (float).
        decoupled_weight_decay (bool): decay the parameter itself, as `AdamW` does.
        maximize, differentiable (bool).

    Raises:
        ValueError: an argument out of its range.
    """

    _counts = ("step",)
    _step_defaults = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }
    _fused = ops["_fused_radam_"]
    _fused_state = {"exp_avg": None, "exp_avg_sq": None, "step": None}
    _fused_options = numbers("lr", "eps", "weight_decay", betas=("beta1", "beta2"))
    _fused_flags = ("decoupled_weight_decay", "maximize")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["exp_avg"] = zeros_like(param)
        state["exp_avg_sq"] = zeros_like(param)

    def _update(self, group, param, grad, state):
        lr, (beta1, beta2) = to_scalar(group["lr"]), group["betas"]
        step = state["step"].add_(1).item()
        decay_weights(group, param, lr)
        grad = direction(group, param, grad)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if param.is_complex():
            param, grad, mean, square = as_real(param, grad, mean, square)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        change = mean / (1 - beta1**step)
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction
        if length > 5.0:
            variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            change = change * (variance * correction) ** 0.5 / (square.sqrt() + group["eps"])
        descend(param, change, lr)


__getattr__ = private_names(__name__)
