"""Batch normalisation in evaluation mode folded into the convolution or linear map before it.

A fixed normalisation is y = (x - mean) * scale + bias with scale = weight / sqrt(var + eps), an affine map of its own.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ..._base import ones_like, rsqrt, zeros_like
from ..._C import Tensor
from ..modules.module import Module
from ..parameter import Parameter

ConvT = TypeVar("ConvT", bound=Module)
LinearT = TypeVar("LinearT", bound=Module)


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check_fixed(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_statistics(bn):
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def _fuse(weight, bias, mean, scale, offset, shape):
    """Weight and bias after the normalisation; `shape` lines the scale up with the output channels of the weight."""
    dtype = (weight if bias is None else bias).dtype
    bias = zeros_like(mean) if bias is None else bias
    fused_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    fused_bias = (bias - mean) * scale + (zeros_like(mean) if offset is None else offset)
    return Parameter(fused_weight, weight.requires_grad), Parameter(fused_bias.to(dtype), bias.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the convolution with the normalisation folded in.

    Args:
        conv_w (Tensor), conv_b (Tensor, optional): weight and bias of the convolution.
        bn_rm (Tensor), bn_rv (Tensor), bn_eps (float): mean, variance and epsilon of the normalisation.
        bn_w (Tensor, optional), bn_b (Tensor, optional): its weight and bias.
        transpose (bool): whether it is a transposed convolution, whose output channels are the second dimension.
    """
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fuse(conv_w, conv_b, bn_rm, scale, bn_b, shape)


def fuse_conv_bn_eval(conv: ConvT, bn: Any, transpose: bool = False) -> ConvT:
    """A copy of the convolution that also normalises, in evaluation mode.

    Raises:
        AssertionError: a module is in training mode, or `bn` has no running statistics.
    """
    _check_fixed(conv, bn)
    _check_statistics(bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the linear map with the normalisation folded in; arguments as for `fuse_conv_bn_weights`."""
    scale = (bn_w * rsqrt(bn_rv + bn_eps)).to(linear_w.dtype)
    return _fuse(linear_w, linear_b, bn_rm, scale, bn_b, (-1, 1))


def fuse_linear_bn_eval(linear: LinearT, bn: Any) -> LinearT:
    """A copy of the linear map that also normalises, in evaluation mode.

    Raises:
        AssertionError: a module is in training mode, `bn` has no running statistics, or it normalises neither one feature
            nor `linear.out_features`.
    """
    _check_fixed(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    _check_statistics(bn)
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def __dir__() -> list[str]:
    return __all__
