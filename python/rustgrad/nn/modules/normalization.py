"""`LayerNorm`: normalises over the last dimensions."""

from __future__ import annotations

import numbers

from ..._base import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._C import Tensor, dtype
    from ..._typing import DeviceLike

__all__ = ["LayerNorm"]


class LayerNorm(Module):
    r"""Applies :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} * weight + bias` over the last dimensions.

    Args:
        normalized_shape (int or sequence): the sizes of those dimensions.
        eps (float): added to the variance.
        elementwise_affine (bool): whether there are `weight` (ones at first) and `bias` (zeros).
        bias (bool): whether there is a bias, if `elementwise_affine`.

    Source: Ba, Kiros, Hinton, "Layer Normalization", arXiv:1607.06450.
    """

    weight: Parameter | None
    bias: Parameter | None

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape: tuple[int, ...] = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            value = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets `weight` to ones and `bias` to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )
