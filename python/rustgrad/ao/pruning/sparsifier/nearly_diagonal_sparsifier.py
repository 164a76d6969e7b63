"""`NearlyDiagonalSparsifier`: what is far from the diagonal becomes zero."""

from __future__ import annotations

from typing import Any

from ...._C import ops
from ....nn.modules.module import Module
from .base_sparsifier import BaseSparsifier

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps the `nearliness` diagonals of a matrix that are nearest to the main one; an odd number."""

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__({"nearliness": nearliness})

    def update_mask(  # type: ignore[override]
        self, module: Module, tensor_name: str, nearliness: int, **kwargs: Any
    ) -> None:
        """Sets the mask of a matrix.

        Raises:
            ValueError: an even number of diagonals, or more than the matrix has.
        """
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data = ops["zeros_like"](mask)
        if nearliness <= 0:
            return
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        far = nearliness // 2
        if far >= min(mask.shape):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.data = ops["ones_like"](mask).triu(-far).tril(far)
