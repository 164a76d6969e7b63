"""Stochastic gradient descent with momentum (Sutskever et al. 2013 for Nesterov's form)."""

from __future__ import annotations

from .._base import Tensor, ops, zeros_like
from ..optim.optimizer import ParamsT
from .optimizer import Optimizer, check_lr, check_not_negative, numbers, private_names, to_scalar

__all__ = ["SGD"]

_update_many = ops["_fused_sgd_"]


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
    _fused_options = numbers("lr", "momentum", "dampening", "weight_decay")

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

    def _state_of(self, group, param):
        # Without momentum there is no state, not even an empty one.
        return self.state[param] if group["momentum"] else {}

    def _options_of_fused(self, group):
        lr = to_scalar(group["lr"])
        return {"lr": lr} if self._may_fuse(group) and not isinstance(lr, Tensor) else None

    def _states_of(self, group, params):
        return [self.state[p] for p in params] if group["momentum"] else []

    def _update_fused(self, group, options, params, grads, states):
        lr = options["lr"]
        if not group["momentum"]:
            self._fused_step(group, lr, params, grads, [], False)
            return
        buffers = [state.get("momentum_buffer") for state in states]
        first = [buffer is None for buffer in buffers]
        if True not in first:
            self._fused_step(group, lr, params, grads, buffers, False)
            return
        # Parameters whose first gradient comes later than that of others take their first step by themselves.
        for p, state, is_first in zip(params, states, first, strict=True):
            if is_first:
                state["momentum_buffer"] = zeros_like(p)
        for which in set(first):
            chosen = [i for i, is_first in enumerate(first) if is_first == which]
            lists = [[every[i] for i in chosen] for every in (params, grads)]
            self._fused_step(group, lr, *lists, [states[i]["momentum_buffer"] for i in chosen], which)

    def _fused_step(self, group, lr, params, grads, buffers, first):
        _update_many(
            params,
            grads,
            buffers,
            weight_decay=to_scalar(group["weight_decay"]),
            momentum=group["momentum"],
            lr=lr,
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=first,
        )

    def _update_by_sparse(self, group, param, grad, state):
        self._update(group, param, grad, state)

    def _update(self, group, param, grad, state):
        lr, momentum = to_scalar(group["lr"]), group["momentum"]
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=to_scalar(group["weight_decay"]))
        if momentum != 0:
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


__getattr__ = private_names(__name__)
