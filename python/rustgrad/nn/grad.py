"""Gradients of convolutions as functions: by the input or by the weight, from the gradient of the result."""

from __future__ import annotations

from collections.abc import Sequence

from .._aten import convolution_backward
from .._C import Tensor

Sizes = int | Sequence[int]

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(dims, index, input, weight, grad_output, stride, padding, dilation, groups):
    steps = [[n] * dims if isinstance(n, int) else list(n) for n in (stride, padding, dilation)]
    mask = (index == 0, index == 1, False)
    return convolution_backward(grad_output, input, weight, None, *steps, False, [0] * dims, groups, mask)[index]


def _of_input(dims, input_size, weight, grad_output, *options):
    # The gradient by the input does not depend on its values.
    input = grad_output.new_zeros(()).expand(input_size)
    return _gradient(dims, 0, input, weight, grad_output, *options)


def _of_weight(dims, input, weight_size, grad_output, *options):
    weight = grad_output.new_zeros(()).expand(weight_size)
    return _gradient(dims, 1, input, weight, grad_output, *options)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` by an input of `input_size` `(N, C, L)`, with the other arguments of the convolution."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` by a weight of `weight_size`, with the other arguments of the convolution."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` by an input of `input_size` `(N, C, H, W)`, with the other arguments of the convolution."""
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` by a weight of `weight_size`, with the other arguments of the convolution."""
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` by an input of `input_size` `(N, C, D, H, W)`, with the other arguments of the convolution."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` by a weight of `weight_size`, with the other arguments of the convolution."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)


def __dir__() -> list[str]:
    return __all__
