"""SparseAdam: Adam that changes the elements of a sparse gradient alone."""

from __future__ import annotations

import math

from .._base import Tensor, zeros_like
from ..autograd import _engine
from .optimizer import Optimizer, ParamsT, private_names, to_scalar, with_values

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, such as those of `nn.Embedding(sparse=True)`.

    Moments and parameters change where the gradient has elements; elsewhere they stay, as if there had been no step.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), betas (pair), eps (float), maximize (bool): as for `Adam`.

    Raises:
        ValueError: an argument out of its range, a complex parameter or a sparse one.
        RuntimeError: (in `step`) a dense gradient.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not isinstance(lr, (int, float)) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        if places := self._places(Tensor.is_complex):
            raise ValueError(f"Complex params at indices {places}: SparseAdam does not support complex parameters")
        if places := self._places(_engine.is_sparse):
            raise ValueError(f"Sparse params at indices {places}: SparseAdam requires dense parameter tensors")

    def _places(self, has):
        """[group, place] of each parameter for which `has` is true."""
        groups = enumerate(self.param_groups)
        return [[i, j] for i, group in groups for j, param in enumerate(group["params"]) if has(param)]

    def _init_state(self, group, param, state):
        state["step"] = 0
        state["exp_avg"] = zeros_like(param)
        state["exp_avg_sq"] = zeros_like(param)

    def _update_by_sparse(self, group, param, grad, state):
        state["step"] += 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        if not grad.values().numel():
            return
        lr, (beta1, beta2) = to_scalar(group["lr"]), group["betas"]
        values, average, square = grad.values(), state["exp_avg"], state["exp_avg_sq"]
        old = average.sparse_mask(grad).values()
        step = (values - old) * (1 - beta1)
        average.add_(with_values(grad, step))
        old_square = square.sparse_mask(grad).values()
        step_of_square = (values * values - old_square) * (1 - beta2)
        square.add_(with_values(grad, step_of_square))
        root = (old_square + step_of_square).sqrt() + group["eps"]
        count = state["step"]
        rate = lr * math.sqrt(1 - beta2**count) / (1 - beta1**count)
        param.add_(with_values(grad, (old + step) / root * -rate))

    def _update(self, group, param, grad, state):
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")


__getattr__ = private_names(__name__)
