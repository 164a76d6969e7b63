"""Functions of `ops.aten` by PyTorch's names and parameters that are calls of other ops here."""

from __future__ import annotations

from . import _C
from ._C import Tensor, dtype

_ops = _C.ops


def slice(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """`self[start:end:step]` along a dimension, a view."""
    return _ops["_slice"](self, dim, start, end, step)


def square_(self: Tensor) -> Tensor:
    """`self * self`, written to `self`."""
    return self.pow_(2)


def _safe_softmax(self: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`softmax` that is zero where all elements are minus infinity."""
    nothing = (self == float("-inf")).all(dim, keepdim=True)
    return _ops["softmax"](self.masked_fill(nothing, 0), dim, dtype=dtype).masked_fill(nothing, 0)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
    """The gradient of `softmax` by its input, from its result."""
    return _ops["_softmax_backward"](grad_output, output, dim).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor:
    """The gradient of `log_softmax` by its input, from its result."""
    return _ops["_log_softmax_backward"](grad_output, output, dim).to(input_dtype)


def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """The gradient of `silu`."""
    return _ops["_silu_backward"](grad_output, self)


def mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """The gradient of `mish`."""
    return _ops["_mish_backward"](grad_output, self)


def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    """The gradient of `gelu`."""
    return _ops["_gelu_backward"](grad_output, self, approximate)


def threshold_backward(grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    """The gradient of `threshold`: that of the result where `self` is above the threshold."""
    return _ops["_threshold_backward"](grad_output, self, threshold)


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of `native_dropout`."""
    return grad_output * (mask.to(grad_output.dtype) * scale)


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...],
    padding: int | tuple[int, ...],
    dilation: int | tuple[int, ...],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of `max_pool2d`: each element at the place that its maximum came from."""
    found = _ops["_max_pool_backward"](grad_output, indices, self.shape, 2)
    # The input has a gradient, of zeros.
    return found + self.masked_fill(self.new_ones(()).bool(), 0) if self.requires_grad else found


def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: tuple[int, ...] | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
    output_mask: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of `convolution` by input, weight and bias, None where `output_mask` is False."""
    from .autograd import enable_grad, grad

    record = _C.is_grad_enabled()
    with enable_grad():
        # Views, so that the gradients are recorded in turn where their arguments require grad.
        x, w = (t.view_as(t) if record and t.requires_grad else t.detach().requires_grad_() for t in (input, weight))
        result = _ops["convolution"](x, w, None, stride, padding, dilation, transposed, output_padding, groups)
    wanted = [t for t, keep in zip((x, w), output_mask, strict=False) if keep]
    found = iter(grad(result, wanted, grad_output, create_graph=record) if wanted else ())
    of_input, of_weight = (next(found) if keep else None for keep in output_mask[:2])
    rest = [d for d in range(grad_output.dim()) if d != 1]
    return of_input, of_weight, grad_output.sum(rest) if output_mask[2] else None


def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """`native_batch_norm` in training, with an empty reserve as fourth result."""
    results = _ops["native_batch_norm"](input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, input.new_empty(0).byte())
