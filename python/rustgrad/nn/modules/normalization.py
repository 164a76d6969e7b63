"""Normalisation over the last dimensions, over groups of channels, and by neighbouring channels."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from ..._absent import getattr_of
from ..._base import arange, empty
from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


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


class GroupNorm(Module):
    r"""Applies :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} * weight + bias` over groups of the channels of a sample.

    Args:
        num_groups (int): number of groups of equal size.
        num_channels (int): C, the number of channels.
        eps (float): added to the variance.
        affine (bool): whether there are `weight` (ones at first) and `bias` (zeros), an element per channel.
        bias (bool): whether there is a bias, if `affine`.

    Shape:
        input and output `(N, C, *)`.

    Raises:
        ValueError: the channels are not divisible by the groups.

    Source: Wu, He, "Group Normalization", arXiv:1803.08494.
    """

    weight: Parameter | None
    bias: Parameter | None

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets `weight` to ones and `bias` to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    r"""Applies :math:`y = x / \sqrt{E[x^2] + eps} * weight` over the last dimensions.

    Args:
        normalized_shape (int or sequence): the sizes of those dimensions.
        eps (float or None): added to the mean square; None is the distance from 1 to the next float.
        elementwise_affine (bool): whether there is a `weight` (ones at first).

    Shape:
        input and output `(*, *normalized_shape)`.

    Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467.
    """

    weight: Parameter | None

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape: tuple[int, ...] = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets `weight` to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    r"""Divides each channel by :math:`(k + \alpha / n \sum a_j^2)^\beta`, the sum over `size` = n neighbouring channels.

    Shape:
        input and output `(N, C, *)`.

    Source: Krizhevsky, Sutskever, Hinton, "ImageNet Classification with Deep Convolutional Neural Networks", 2012.
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images as Torch7 had it: the first channel stays in the sums of all later ones.

    Shape:
        input and output `(N, C, H, W)`.

    Raises:
        ValueError: the input is not 4D.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        channel = arange(input.size(1), device=input.device)
        counted = ((channel[:, None] - channel).abs() <= reach) | ((channel == 0) & (channel[:, None] > reach))
        sums = (counted.to(input.dtype) @ (input * input).flatten(2)).reshape(input.size())
        return input * (sums * (self.alpha / self.size) + self.k).pow(-self.beta)


__getattr__ = getattr_of(__name__)
