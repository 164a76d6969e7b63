"""Stochastic gradient descent with momentum (Sutskever et al. 2013 for Nesterov's form)."""

from __future__ import annotations

from .._base import Tensor, ops, zeros_like
from .optimizer import Optimizer, check_lr, check_not_negative, to_scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..optim.optimizer import ParamsT

__all__ = ["SGD"]

_fused_sgd = ops.get("_fused_sgd_")


class SGD(Optimizer):
    """Stochastic gradient descent.

    The buffer is `b = momentum * b + (1 - dampening) * g` (at first `b = g`); the update is `p -= lr * b`, with
    Nesterov `p -= lr * (g + momentum * b)`.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor): learning rate.
        momentum, dampening, weight_decay (float), nesterov (bool).
        maximize (bool): ascend instead.
        differentiable (bool): record the step in the graph.
        fused (bool, optional): False forbids the fused op, which is otherwise taken where there is one.

    Raises:
        ValueError: a negative argument, or Nesterov without momentum or with dampening.
    """

    _step_defaults = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        self._check_fused()

    def _step_group(self, group):
        use_fused = _fused_sgd is not None and group["fused"] is not False and not group["differentiable"]
        momentum = group["momentum"]
        lr = to_scalar(group["lr"])
        if isinstance(lr, Tensor):
            use_fused = False
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if not use_fused or p.is_complex():
                self._update(group, p, grad, lr)
                continue
            buffer, first = None, False
            if momentum:
                state = self.state[p]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer, first = zeros_like(p), True
                    state["momentum_buffer"] = buffer
            _fused_sgd(
                p,
                grad,
                buffer,
                lr=lr,
                momentum=momentum,
                dampening=group["dampening"],
                weight_decay=to_scalar(group["weight_decay"]),
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                first=first,
            )

    def _update(self, group, param, grad, lr):
        momentum = group["momentum"]
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=to_scalar(group["weight_decay"]))
        if momentum != 0:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        if isinstance(lr, Tensor):
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)
