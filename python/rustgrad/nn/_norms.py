"""Normalisations whose arguments are checked in Python, or that are written with other ops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._base import ops
from .._C import Tensor
from ..overrides import overridable

_batch_norm = ops["batch_norm"]
_group_norm = ops["group_norm"]
_instance_norm = ops["instance_norm"]


def _check_batch(size: Sequence[int]) -> None:
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


@overridable
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of `(N, C, *)`: with `training` by its statistics over the batch, which the running
    statistics then move towards, else by the running statistics. See `nn.BatchNorm1d`.

    Raises:
        ValueError: with `training`, there is one value per channel; `eps` is negative, or zero in training.
    """
    if training:
        _check_batch(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


@overridable
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample of `(N, C, *)`: see `nn.InstanceNorm1d`.

    Raises:
        ValueError: with `use_input_stats`, there is one value per channel of a sample.
    """
    if use_input_stats and math.prod(input.size()[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@overridable
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalises groups of the channels of each sample of `(N, C, *)`: see `nn.GroupNorm`.

    Raises:
        RuntimeError: the channels are not divisible by `num_groups`.
        ValueError: there is one value per group.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    if num_groups > 0:
        _check_batch([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return _group_norm(input, num_groups, weight, bias, eps, False)


@overridable
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divides each channel of `(N, C, *)` by a power of the squares of `size` neighbouring channels: see
    `nn.LocalResponseNorm`.

    Raises:
        ValueError: the input has fewer than 3 dimensions.
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    # One more dimension makes the channels a spatial one.
    square = (input * input).flatten(2).unsqueeze(1)
    square = ops["nn.functional.pad"](square, (0, 0, size // 2, (size - 1) // 2))
    mean = ops["nn.functional.avg_pool2d"](square, (size, 1), stride=1).reshape(input.size())
    return input / mean.mul(alpha).add(k).pow(beta)
