"""Adafactor (Shazeer and Stern, arXiv:1804.04235): Adam's second moment of a matrix kept as its row and column means."""

from __future__ import annotations

from .._base import ops, zeros_like
from .._C import Tensor
from .._dtype_info import finfo
from .optimizer import Optimizer, ParamsT, private_names, step_tensor, to_scalar

__all__ = ["Adafactor"]

_vector_norm = ops["linalg.vector_norm"]


def _mean_square(grad, dim):
    return _vector_norm(grad, dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _rms(tensor):
    return tensor.norm(2).item() / tensor.numel() ** 0.5


class Adafactor(Optimizer):
    """The gradient over the square root of its second moment, which is factored for tensors of two dimensions and more.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor): the greatest step relative to the parameter's root mean square; it falls as 1 / sqrt(step).
        beta2_decay (float): the moment's rate of change is `step ** beta2_decay`; not positive.
        eps (pair): the least root of the second moment (None: the dtype's epsilon), the least root mean square of a parameter.
        d (float): the greatest root mean square of an update; at least 1.
        weight_decay (float): decoupled decay of the parameters.
        maximize (bool).

    Raises:
        ValueError: an argument out of its range.
        RuntimeError: (in `step`) a complex parameter.
    """

    _counts = ("step",)
    _step_defaults = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if not isinstance(lr, (int, float)) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        checks = (
            ("Learning rate should be >= 0", lr, 0.0 <= lr),
            ("beta2_decay should be <= 0", beta2_decay, 0.0 >= beta2_decay),
            ("epsilon1 should be >= 0", eps[0], eps[0] is None or 0.0 <= eps[0]),
            ("epsilon2 should be >= 0", eps[1], 0.0 <= eps[1]),
            ("Clipping threshold d should be >= 1", d, 1.0 <= d),
            ("weight_decay should be >= 0", weight_decay, 0.0 <= weight_decay),
        )
        for what, value, fits in checks:
            if not fits:
                raise ValueError(f"{what} but is: {value}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _init_state(self, group, param, state):
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad = param.grad
        state["step"] = step_tensor()
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.size(-1)))
        else:
            state["variance"] = zeros_like(grad)

    def _update(self, group, param, grad, state):
        grad = -grad if group["maximize"] else grad
        step = state["step"].add_(1).item()
        rate = step ** group["beta2_decay"]
        eps1, eps2 = group["eps"]
        eps1 = finfo(param.dtype).eps if eps1 is None else eps1
        lr = to_scalar(group["lr"])
        alpha = max(eps2, _rms(param)) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            row, col = state["row_var"], state["col_var"]
            row.lerp_(_mean_square(grad, -1), rate)
            col.lerp_(_mean_square(grad, -2), rate)
            moment = (row @ col).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            moment = state["variance"].lerp_(grad * grad, rate).clone()
        update = moment.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        param.add_(update, alpha=-alpha / max(1.0, _rms(update) / group["d"]))


__getattr__ = private_names(__name__)
