"""Adam (Kingma and Ba, arXiv:1412.6980), AMSGrad, and decoupled weight decay (arXiv:1711.05101)."""

from __future__ import annotations

from typing import Any

from .._base import Tensor, maximum, ops, zeros_like
from ..optim.optimizer import ParamsT
from .optimizer import Optimizer, check_lr, check_not_negative, numbers, private_names, step_tensor, to_scalar

__all__ = ["Adam", "as_real"]

# By whether the weight decay is decoupled.
_fused = {False: ops["_fused_adam_"], True: ops["_fused_adamw_"]}


def as_real(*tensors: Any) -> Any:
    """Views of complex tensors as real ones with a last dimension of 2."""
    return [t if t is None else ops["view_as_real"](t) for t in tensors]


def _check_betas(betas, whole):
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor) and whole:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")
    if len({isinstance(beta, Tensor) for beta in betas}) != 1 or not isinstance(betas[0], (float, Tensor)):
        raise ValueError("betas must be either both floats or both Tensors")


class Adam(Optimizer):
    """Adam.

    With `m = b1 * m + (1 - b1) * g` and `v = b2 * v + (1 - b2) * g^2`, step t changes a parameter by
    `-lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), betas (pair), eps, weight_decay (float).
        amsgrad (bool): divide by the largest `v` so far.
        maximize (bool): ascend instead.
        differentiable (bool): record the step in the graph.
        fused (bool, optional): False forbids the fused op, which is otherwise taken where there is one.
        decoupled_weight_decay (bool): decay the parameter itself, as `AdamW` does.

    Raises:
        ValueError: an argument out of its range.
    """

    _counts = ("step",)
    _step_defaults = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "fused": None,
        "decoupled_weight_decay": False,
    }
    _fused_state = {"exp_avg": None, "exp_avg_sq": None, "max_exp_avg_sq": "amsgrad", "step": None}
    _fused_options = numbers("lr", "eps", "weight_decay", betas=("beta1", "beta2"))
    _fused_flags = ("amsgrad", "maximize")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr)
        if not 0.0 <= eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas, foreach and not capturable)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        self._check_fused()

    def _init_state(self, group, param, state):
        state["step"] = step_tensor()
        state["exp_avg"] = zeros_like(param)
        state["exp_avg_sq"] = zeros_like(param)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)

    def _fused_op(self, group):
        return _fused[group["decoupled_weight_decay"]]

    def _update_by_sparse(self, group, param, grad, state):
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def _update(self, group, param, grad, state):
        lr, (beta1, beta2) = to_scalar(group["lr"]), map(to_scalar, group["betas"])
        state["step"].add_(1)
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
        m, v, v_max = state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq")
        if param.is_complex():
            param, grad, m, v, v_max = as_real(param, grad, m, v, v_max)
        m.lerp_(grad, 1 - beta1)
        v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = state["step"].item()
        correction1 = 1 - beta1**step
        correction2 = 1 - beta2**step
        if v_max is not None and group["amsgrad"]:
            v_max.copy_(maximum(v_max.clone(), v))
            v = v_max
        if group["differentiable"] or isinstance(lr, Tensor):
            # The next step changes `m` in place: the graph keeps a copy.
            denominator = v.sqrt() / correction2**0.5 + group["eps"]
            param.add_(m.clone() / denominator * (-lr / correction1))
        else:
            denominator = (v.sqrt() / correction2**0.5).add_(group["eps"])
            param.addcdiv_(m, denominator, value=-lr / correction1)


__getattr__ = private_names(__name__)
