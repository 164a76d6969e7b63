"""Pooling functions: the arguments that Python handles (`return_indices`, sizes that are None, random windows)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._base import ops, rand, relu
from .._C import Tensor
from ..overrides import overridable

Sizes = int | Sequence[int]
SomeSizes = int | Sequence[int | None] | None

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

_MAX = {1: ops["max_pool1d"], 2: ops["max_pool2d"], 3: ops["max_pool3d"]}
_MAX_WITH_INDICES = {
    1: ops["max_pool1d_with_indices"],
    2: ops["nn.functional.max_pool2d_with_indices"],
    3: ops["nn.functional.max_pool3d_with_indices"],
}
_ADAPTIVE_AVG = {2: ops["nn.functional.adaptive_avg_pool2d"], 3: ops["nn.functional.adaptive_avg_pool3d"]}
_ADAPTIVE_MAX = {1: ops["adaptive_max_pool1d"], 2: ops["_adaptive_max_pool2d"], 3: ops["_adaptive_max_pool3d"]}
_AVG = {1: ops["avg_pool1d"], 2: ops["nn.functional.avg_pool2d"], 3: ops["nn.functional.avg_pool3d"]}
_FRACTIONAL = {2: ops["_fractional_max_pool2d"], 3: ops["_fractional_max_pool3d"]}
_UNPOOL = {2: ops["_max_unpool2d"], 3: ops["_max_unpool3d"]}


def _each(value, dims):
    return [value] * dims if isinstance(value, (int, float)) else list(value)


def _max_pool(dims, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    op = (_MAX_WITH_INDICES if return_indices else _MAX)[dims]
    return op(input, kernel_size, stride, padding, dilation, ceil_mode)


@overridable
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest elements of windows of `(N, C, L)` or `(C, L)`: see `nn.MaxPool1d`."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` with the place of each maximum in its channel."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@overridable
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest elements of windows of `(N, C, H, W)` or `(C, H, W)`: see `nn.MaxPool2d`."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overridable
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest elements of windows of `(N, C, D, H, W)` or `(C, D, H, W)`: see `nn.MaxPool3d`."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _sizes(output_size, input):
    """The output's sizes, those of the input where they are None."""
    if isinstance(output_size, int):
        return output_size
    if output_size is None or input.dim() <= len(output_size):
        wanted = 0 if output_size is None else len(output_size)
        raise ValueError(f"Input dimension should be at least {wanted + 1}")
    of_input = input.size()[-len(output_size) :]
    return [n if size is None else size for size, n in zip(output_size, of_input, strict=True)]


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: SomeSizes) -> Tensor:
    """The means of `output_size` windows of `(N, C, H, W)` or `(C, H, W)`; None keeps a size."""
    return _ADAPTIVE_AVG[2](input, _sizes(output_size, input))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: SomeSizes) -> Tensor:
    """The means of `output_size` windows of `(N, C, D, H, W)` or `(C, D, H, W)`; None keeps a size."""
    return _ADAPTIVE_AVG[3](input, _sizes(output_size, input))


@overridable
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` with the place of each maximum in its channel."""
    return _ADAPTIVE_MAX[1](input, output_size)


@overridable
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: SomeSizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with the place of each maximum in its channel."""
    return _ADAPTIVE_MAX[2](input, _sizes(output_size, input))


@overridable
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: SomeSizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with the place of each maximum in its channel."""
    return _ADAPTIVE_MAX[3](input, _sizes(output_size, input))


@overridable
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The largest elements of `output_size` windows of `(N, C, L)` or `(C, L)`."""
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


@overridable
def adaptive_max_pool2d(input: Tensor, output_size: SomeSizes, return_indices: bool = False) -> Any:
    """The largest elements of `output_size` windows of `(N, C, H, W)` or `(C, H, W)`; None keeps a size."""
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


@overridable
def adaptive_max_pool3d(input: Tensor, output_size: SomeSizes, return_indices: bool = False) -> Any:
    """The largest elements of `output_size` windows of `(N, C, D, H, W)` or `(C, D, H, W)`; None keeps a size."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


def _fractional(dims, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dims}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        ratios = _each(output_ratio, dims)
        if len(ratios) != dims:
            raise ValueError(f"{name} requires output_ratio to either be a single number or {dims} numbers.")
        output_size = [int(n * ratio) for n, ratio in zip(input.size()[-dims:], ratios, strict=True)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.size(0)
        samples = rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
    return _FRACTIONAL[dims](input, _each(kernel_size, dims), _each(output_size, dims), samples)


@overridable
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with the place of each maximum in its channel."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with the place of each maximum in its channel."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


@overridable
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest elements of windows at random starts: see `nn.FractionalMaxPool2d`."""
    found = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@overridable
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The largest elements of windows at random starts: see `nn.FractionalMaxPool3d`."""
    found = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def _lp_pool(dims, input, norm_type, kernel_size, stride, ceil_mode):
    if norm_type == 0:
        raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
    if norm_type == math.inf:
        return _MAX[dims](input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf:
        return -_MAX[dims](-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    mean = _AVG[dims](input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    count = math.prod(_each(kernel_size, dims))
    return (mean.sign() * relu(mean.abs())).mul(count).pow(1.0 / norm_type)


@overridable
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type` norms of windows of `(N, C, L)` or `(C, L)`: see `nn.LPPool1d`."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@overridable
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type` norms of windows of `(N, C, H, W)` or `(C, H, W)`: see `nn.LPPool1d`."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@overridable
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type` norms of windows of `(N, C, D, H, W)` or `(C, D, H, W)`: see `nn.LPPool1d`."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _unpooled_size(input, kernel_size, stride, padding, output_size):
    dims = len(kernel_size)
    of_input = input.size()[-dims:]
    usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(of_input, stride, kernel_size, padding, strict=True)]
    if output_size is None:
        return usual
    sizes = list(output_size)
    if len(sizes) == dims + 2:
        sizes = sizes[2:]
    if len(sizes) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, "
            f"but it has a length of '{len(sizes)}'"
        )
    for d, (size, default, step) in enumerate(zip(sizes, usual, stride, strict=True)):
        if not default - step < size < default + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {default - step} and {default + step})'
            )
    return sizes


def _max_unpool(dims, input, indices, kernel_size, stride, padding, output_size):
    kernel = _each(kernel_size, dims)
    steps = kernel if stride is None else _each(stride, dims)
    pads = _each(padding, dims)
    for name, sizes in (("kernel_size", kernel), ("stride", steps), ("padding", pads)):
        if len(sizes) != dims:
            raise RuntimeError(f"max_unpool{dims}d: {name} must be a single int or {dims} ints, got {sizes}")
    size = _unpooled_size(input, kernel, steps, pads, output_size)
    if dims == 1:
        return _UNPOOL[2](input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
    return _UNPOOL[dims](input, indices, size)


@overridable
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Each element of `(N, C, L)` or `(C, L)` at its place among zeros: see `nn.MaxUnpool1d`."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Each element of `(N, C, H, W)` or `(C, H, W)` at its place among zeros: see `nn.MaxUnpool1d`."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Each element of `(N, C, D, H, W)` or `(C, D, H, W)` at its place among zeros: see `nn.MaxUnpool1d`."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
