"""NAdam (Dozat, "Incorporating Nesterov Momentum into Adam", 2016)."""

from __future__ import annotations

from .._base import Tensor, ops, zeros_like
from ._rules import check_adaptive, decay_weights, descend, direction
from .adam import as_real
from .optimizer import Optimizer, ParamsT, numbers, private_names, step_tensor, to_scalar

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """Adam that looks ahead: the next step's momentum already counts in this one.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), betas (pair), eps, weight_decay (float).
        momentum_decay (float): how fast the momentum rises to its factor.
        decoupled_weight_decay (bool): decay the parameter itself, as `AdamW` does.
        maximize, differentiable (bool).

    Raises:
        ValueError: an argument out of its range.
    """

    _counts = ("step", "mu_product")
    _step_defaults = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _fused = ops["_fused_nadam_"]
    _fused_state = {"exp_avg": None, "exp_avg_sq": None, "mu_product": None, "step": None}
    _fused_options = numbers("lr", "eps", "weight_decay", "momentum_decay", betas=("beta1", "beta2"))
    _fused_flags = ("decoupled_weight_decay", "maximize")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adaptive(lr, betas, eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["mu_product"] = step_tensor(1.0)
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

        def momentum(step):
            return beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))

        now, ahead = momentum(step), momentum(step + 1)
        product = state["mu_product"].mul_(now)
        product = product.clone() if group["differentiable"] else product.item()
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (square / (1 - beta2**step)).sqrt() + group["eps"]
        change = grad * ((1.0 - now) / (1.0 - product)) + mean * (ahead / (1.0 - product * ahead))
        descend(param, change / root, lr)


__getattr__ = private_names(__name__)
