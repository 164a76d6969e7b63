"""Resilient backpropagation (Riedmiller and Braun, 1993): steps by the signs of gradients."""

from __future__ import annotations

from .._base import full_like, ones_like, ops, zeros_like
from .._C import Tensor
from .adam import as_real
from .optimizer import Optimizer, ParamsT, check_lr, numbers, private_names, step_tensor, to_scalar

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Each element has a step of its own, which grows while the gradient keeps its sign and shrinks when it turns.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor): the first step.
        etas (pair): the factors by which a step shrinks and grows.
        step_sizes (pair): the least and the greatest step.
        maximize, differentiable (bool).

    Raises:
        ValueError: an argument out of its range.
    """

    _counts = ("step",)
    _step_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _fused = ops["_fused_rprop_"]
    _fused_state = {"prev": None, "step_size": None}
    _fused_options = numbers(etas=("etaminus", "etaplus"), step_sizes=("step_size_min", "step_size_max"))

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        first = float(to_scalar(group["lr"]))
        state["step"] = step_tensor()
        state["prev"] = zeros_like(param)
        state["step_size"] = full_like(param, complex(first, first) if param.is_complex() else first)

    def _update(self, group, param, grad, state):
        (shrink, grow), bounds = group["etas"], group["step_sizes"]
        state["step"].add_(1)
        grad = -grad if group["maximize"] else grad
        previous, size = state["prev"], state["step_size"]
        if param.is_complex():
            param, grad, previous, size = as_real(param, grad, previous, size)
        turn = grad * previous.clone()
        turned = turn < 0
        factor = ones_like(turn).masked_fill(turn > 0, grow).masked_fill(turned, shrink)
        size.mul_(factor).clamp_(*bounds)
        # Where the sign turned, the last step went too far: nothing moves this time.
        grad = grad.masked_fill(turned, 0)
        param.addcmul_(grad.sign(), size.clone() if group["differentiable"] else size, value=-1)
        previous.copy_(grad)


__getattr__ = private_names(__name__)
