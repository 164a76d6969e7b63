"""SparseAdam: Adam for sparse gradients, which no op here makes."""

from __future__ import annotations

from .._C import Tensor
from .optimizer import Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Updates only the elements that a sparse gradient has. There are no sparse gradients here: use `Adam`.

    Args:
        params (iterable): tensors or parameter groups.
        lr (float or Tensor), betas (pair), eps (float), maximize (bool): as for `Adam`.

    Raises:
        ValueError: an argument out of its range, or a complex parameter.
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
        places = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if param.is_complex()
        ]
        if places:
            raise ValueError(f"Complex params at indices {places}: SparseAdam does not support complex parameters")

    def _update(self, group, param, grad, state):
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
