"""Muon: momentum whose steps are orthogonalized matrices, for the two-dimensional weights of hidden layers.

Source: Keller Jordan, Muon: An optimizer for hidden layers in neural networks, https://kellerjordan.github.io/posts/muon/.
"""

from __future__ import annotations

import math

from .._base import addmm, bfloat16, zeros_like
from .._C import Tensor
from .optimizer import Optimizer, ParamsT, private_names, to_scalar

__all__ = ["Muon"]

_RATIOS = {
    "original": lambda a, b: math.sqrt(max(1, a / b)),
    # Liu et al., Muon is Scalable for LLM Training, arXiv:2502.16982.
    "match_rms_adamw": lambda a, b: 0.2 * math.sqrt(max(a, b)),
    # Bernstein, Deriving Muon, https://jeremybernste.in/writing/deriving-muon.
    "spectral_unclamped": lambda a, b: math.sqrt(a / b),
}


def _orthogonalized(grad, coefficients, steps, eps):
    """The orthogonal factor of a matrix, roughly, by Newton-Schulz steps X <- a X + (b G + c G G) X with G = X X^T."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.to(dtype=bfloat16, copy=True)
    x = x.T if tall else x
    # The iteration converges for singular values up to 1.
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Optimizer):
    """Descends along orthogonalized momentum; biases and embeddings need another optimizer.

    Args:
        params (iterable): matrices, or parameter groups of them.
        lr (float), weight_decay (float): step size and decoupled decay.
        momentum (float), nesterov (bool): the running mean of gradients.
        ns_coefficients (three floats), ns_steps (int), eps (float): of the Newton-Schulz iteration.
        adjust_lr_fn (str, optional): how the step depends on the shape `(A, B)`: "original" (default) times sqrt(max(1, A / B)),
            "match_rms_adamw" times 0.2 sqrt(max(A, B)), "spectral_unclamped" times sqrt(A / B).

    Raises:
        ValueError: an argument out of its range, or a parameter that is no matrix.
        RuntimeError: (in `step`) a complex parameter.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if not isinstance(lr, (int, float)) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for what, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATIOS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for p in (p for group in self.param_groups for p in group["params"]):
            if p.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _init_state(self, group, param, state):
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state["momentum_buffer"] = zeros_like(param.grad)

    def _update(self, group, param, grad, state):
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        lr, momentum = to_scalar(group["lr"]), group["momentum"]
        mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(mean, momentum) if group["nesterov"] else mean
        update = _orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        ratio = _RATIOS[group["adjust_lr_fn"] or "original"](*param.shape)
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update, alpha=-lr * ratio)


__getattr__ = private_names(__name__)
