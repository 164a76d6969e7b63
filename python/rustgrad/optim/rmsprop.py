"""RMSprop (Hinton, lecture 6 of "Neural Networks for Machine Learning"), centred form after arXiv:1308.0850."""

from __future__ import annotations

from .._base import Tensor, ops, zeros_like
from ..optim.optimizer import ParamsT
from .adam import as_real
from .optimizer import Optimizer, check_lr, check_not_negative, numbers, private_names, step_tensor, to_scalar

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Divides the gradient by the root of a running average of its square.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), alpha (the average's factor), eps, weight_decay, momentum (float).
        centered (bool): subtract the square of the average gradient.
        maximize, differentiable (bool).

    Raises:
        ValueError: a negative argument.
    """

    _counts = ("step",)
    _step_defaults = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _fused = ops["_fused_rmsprop_"]
    _fused_state = {"square_avg": None, "grad_avg": "centered", "momentum_buffer": "momentum"}
    _fused_options = numbers("lr", "alpha", "eps", "weight_decay", "momentum")
    _fused_flags = ("centered", "maximize")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float | Tensor = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["square_avg"] = zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)

    def _update(self, group, param, grad, state):
        lr, alpha = to_scalar(group["lr"]), group["alpha"]
        state["step"].add_(1)
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square, mean, buffer = state["square_avg"], state.get("grad_avg"), state.get("momentum_buffer")
        if param.is_complex():
            param, grad, square, mean, buffer = as_real(param, grad, square, mean, buffer)
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean.lerp_(grad, 1 - alpha)
            average = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            average = square.sqrt()
        if group["differentiable"]:
            average = average + group["eps"]
        else:
            average.add_(group["eps"])
        if group["momentum"] > 0:
            change = buffer.mul_(group["momentum"]).addcdiv_(grad, average)
            if isinstance(lr, Tensor):
                param.add_(change * -lr)
            else:
                param.add_(change, alpha=-lr)
        elif isinstance(lr, Tensor):
            param.add_(grad / average * -lr)
        else:
            param.addcdiv_(grad, average, value=-lr)


__getattr__ = private_names(__name__)
