"""Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011)."""

from __future__ import annotations

from .._base import Tensor, full_like, ops
from ..optim.optimizer import ParamsT
from .adam import as_real
from .optimizer import (
    Optimizer,
    check_lr,
    check_not_negative,
    numbers,
    private_names,
    step_tensor,
    to_scalar,
    with_values,
)

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Divides the gradient by the root of the sum of its squares.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), lr_decay, weight_decay, initial_accumulator_value, eps (float).
        maximize, differentiable (bool).
        fused (bool, optional): False forbids the fused op, which is otherwise taken where there is one.

    Raises:
        ValueError: a negative argument.
    """

    _counts = ("step",)
    _step_defaults = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _fused = ops["_fused_adagrad_"]
    _fused_state = {"sum": None, "step": None}
    _fused_options = numbers("lr", "lr_decay", "eps", "weight_decay")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float | Tensor = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        self._check_fused()
        for group in self.param_groups:
            for p in group["params"]:
                self._init_state(group, p, self.state[p])
                if p.is_meta:
                    self._made_on_meta = True

    def _step_group(self, group):
        if self.__dict__.get("_made_on_meta"):
            # `Module.to_empty` may have given the parameters memory since: their state starts there.
            for p in group["params"]:
                if self.state[p]["sum"].is_meta and not p.is_meta:
                    self._init_state(group, p, self.state[p])
        super()._step_group(group)

    def _init_state(self, group, param, state):
        start = self.defaults["initial_accumulator_value"]
        state["step"] = step_tensor()
        state["sum"] = full_like(param, complex(start, start) if param.is_complex() else start)

    def _update_by_sparse(self, group, param, grad, state):
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state["step"].add_(1)
        rate = to_scalar(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        grad = (-grad if group["maximize"] else grad).coalesce()
        state["sum"].add_(grad.pow(2))
        root = state["sum"].sparse_mask(grad).sqrt().values() + group["eps"]
        param.add_(with_values(grad, grad.values() / root), alpha=-rate)

    def _update(self, group, param, grad, state):
        lr = to_scalar(group["lr"])
        state["step"].add_(1)
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        rate = lr / (1 + (state["step"].item() - 1) * group["lr_decay"])
        total = state["sum"]
        if param.is_complex():
            param, grad, total = as_real(param, grad, total)
        total.addcmul_(grad, grad, value=1)
        root = total.sqrt() + group["eps"]
        if isinstance(rate, Tensor):
            param.add_(grad / root * -rate)
        else:
            param.addcdiv_(grad, root, value=-rate)


__getattr__ = private_names(__name__)
