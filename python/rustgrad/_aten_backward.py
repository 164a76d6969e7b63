"""Ops of `ops.aten` that compute gradients: by autograd of the op whose gradient they are, or by the formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _C
from ._base import Tensor
from .autograd import enable_grad, grad

__all__ = ["FORMS"]

_ops = _C.ops


def _gradients(function: Callable[..., Any], inputs: Sequence[Tensor | None], grad_output: Tensor, mask: Sequence[bool]) -> Any:  # fmt: skip
    """The gradients of `function(*inputs)` by the inputs, None where `mask` is False or there is no input."""
    record = _C.is_grad_enabled()
    with enable_grad():
        # Views, so that the gradients are recorded in turn where their arguments require grad.
        given = [
            t if t is None else t.view_as(t) if record and t.requires_grad else t.detach().requires_grad_(want)
            for t, want in zip(inputs, mask)
        ]
        result = function(*given)
    wanted = [t for t, want in zip(given, mask) if want and t is not None]
    found = iter(grad(result, wanted, grad_output, create_graph=record) if wanted else ())
    return tuple(next(found) if want and t is not None else None for t, want in zip(given, mask))


def _functional(name: str) -> Any:
    import importlib

    return getattr(importlib.import_module("rustgrad.nn.functional"), name)


def native_layer_norm_backward(
    grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Tensor | None,
    bias: Tensor | None, output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `native_layer_norm` by input, weight and bias."""
    shape = tuple(normalized_shape)

    def run(x: Tensor, w: Any, b: Any) -> Tensor:
        return _normalized(x, rstd, shape, w, b)

    return _gradients(run, (input, weight, bias), grad_out, output_mask)  # type: ignore[no-any-return]


def _normalized(x: Tensor, rstd: Tensor, shape: Any, w: Any, b: Any) -> Tensor:
    """The normalised input with the deviation that is given, as a function of the input whose gradient is that of the op."""
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    centred = x - x.mean(dims, keepdim=True)
    variance = centred.square().mean(dims, keepdim=True)
    # What was added to the variance, so that the deviation is the one that was computed.
    extra = (rstd.reshape(variance.shape).to(x.dtype) ** -2 - variance).detach()
    made = centred * (variance + extra).rsqrt()
    made = made if w is None else made * w
    return made if b is None else made + b


def native_group_norm_backward(
    grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: int, C: int, HxW: int, group: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `native_group_norm` by input, weight and bias."""

    def run(x: Tensor, w: Any, b: Any) -> Tensor:
        flat = _normalized(x.reshape(N, group, C // group * HxW), rstd, (C // group * HxW,), None, None)
        made = flat.reshape(N, C, HxW)
        made = made if w is None else made * w[:, None]
        return (made + b[:, None]).reshape(x.shape)

    bias = input.new_zeros(C)
    found = _gradients(run, (input, weight, bias), grad_out, output_mask)
    return found  # type: ignore[no-any-return]


def native_batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `native_batch_norm` by input, weight and bias."""
    batch_norm = _functional("batch_norm")
    stats = (None, None) if train else (running_mean, running_var)

    def run(x: Tensor, w: Any, b: Any) -> Tensor:
        w = x.new_ones(x.shape[1]) if w is None else w
        return batch_norm(x, *stats, w, b, train, 0.0, eps)  # type: ignore[no-any-return]

    bias = input.new_zeros(input.shape[1], dtype=input.dtype if weight is None else weight.dtype)
    return _gradients(run, (input, weight, bias), grad_out, output_mask)  # type: ignore[no-any-return]


def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The gradient of `embedding` by its table."""
    table = grad_output.new_zeros((num_weights, grad_output.shape[-1]))
    embedding, padding = _functional("embedding"), None if padding_idx == -1 else padding_idx

    def run(w: Tensor) -> Tensor:
        return embedding(indices, w, padding, None, 2.0, scale_grad_by_freq)  # type: ignore[no-any-return]

    return _gradients(run, (table,), grad_output, (True,))[0]  # type: ignore[no-any-return]


def _scaled_dot_product_flash_attention_for_cpu_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float, is_causal: bool,
    *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of attention by query, key and value."""
    attention = _functional("scaled_dot_product_attention")

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, attn_mask, 0.0, is_causal, scale=scale)  # type: ignore[no-any-return]

    found = _gradients(run, (query, key, value), grad_out, (True, True, True))
    # As in PyTorch, heads lie inside positions; a graph of ops takes views of that form for granted.
    return tuple(g.transpose(1, 2).contiguous().transpose(1, 2) for g in found)


def _of_loss(name: str, *options: str) -> Callable[..., Tensor]:
    def backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, *values: Any) -> Tensor:
        named = dict(zip(options, values))
        function, kind = _functional(name), ("none", "mean", "sum")[reduction]

        def run(x: Tensor) -> Tensor:
            return function(x, target, reduction=kind, **named)  # type: ignore[no-any-return]

        return _gradients(run, (self,), grad_output, (True,))[0]  # type: ignore[no-any-return]

    return backward


def nll_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, total_weight: Tensor
) -> Tensor:  # fmt: skip
    """The gradient of `nll_loss`."""
    function, kind = _functional("nll_loss"), ("none", "mean", "sum")[reduction]

    def run(x: Tensor) -> Tensor:
        return function(x, target, weight, ignore_index=ignore_index, reduction=kind)  # type: ignore[no-any-return]

    return _gradients(run, (self,), grad_output, (True,))[0]  # type: ignore[no-any-return]


def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """The gradient of `sigmoid`, from its result."""
    return grad_output * ((1 - output) * output)


def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """The gradient of `tanh`, from its result."""
    return grad_output * (1 - output.square())


def _of_function(name: str) -> Callable[..., Tensor]:
    """A gradient whose arguments after `grad_output` are those of a function of one tensor."""

    def backward(grad_output: Tensor, self: Tensor, *rest: Any) -> Tensor:
        from ._aten_forms import find

        function = find(name)
        if function is None:
            raise NotImplementedError(f"ops.aten.{name}_backward: there is no {name}")
        # Sizes that are left out of a pool are those of its window.
        given = [v or rest[0] if i == 1 and isinstance(v, (list, tuple)) else v for i, v in enumerate(rest)]
        return _gradients(lambda x: function(x, *given), (self,), grad_output, (True,))[0]  # type: ignore[no-any-return]

    return backward


def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope: float, self_is_result: bool) -> Tensor:
    """The gradient of `leaky_relu`, from its input or its result."""
    return grad_output.where(self > 0, grad_output * negative_slope)


def elu_backward(
    grad_output: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Tensor
) -> Tensor:
    """The gradient of `elu`, from its input or its result."""
    x = self_or_result
    below = (x + alpha * scale) * input_scale if is_result else (x * input_scale).exp() * (alpha * scale * input_scale)
    return grad_output * below.where(x <= 0, x.new_full((), scale))


def _adaptive_avg_pool2d_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """The gradient of `adaptive_avg_pool2d`."""
    pool, size = _functional("adaptive_avg_pool2d"), tuple(grad_output.shape[-2:])
    return _gradients(lambda x: pool(x, size), (self,), grad_output, (True,))[0]  # type: ignore[no-any-return]


def _of_upsample(name: str) -> Callable[..., Tensor]:
    def backward(grad_output: Tensor, output_size: Any, input_size: Any, *rest: Any, **named: Any) -> Tensor:
        from ._aten_forms import find

        function = find(name)
        if function is None:
            raise NotImplementedError(f"ops.aten.{name}_backward: there is no {name}")
        empty = grad_output.new_zeros(tuple(input_size))
        given = (*rest, *named.values())
        return _gradients(lambda x: function(x, list(output_size), *given), (empty,), grad_output, (True,))[0]  # type: ignore[no-any-return]

    return backward


def select_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    """Zeros of a shape, with the gradient in one row of a dimension."""
    return grad_output.new_zeros(tuple(input_sizes)).select_scatter(grad_output, dim, index)


def slice_backward(
    grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    """Zeros of a shape, with the gradient in a slice of a dimension."""
    return grad_output.new_zeros(tuple(input_sizes)).slice_scatter(grad_output, dim, start, end, step)


FORMS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        native_layer_norm_backward, native_group_norm_backward, native_batch_norm_backward, embedding_dense_backward,
        _scaled_dot_product_flash_attention_for_cpu_backward, nll_loss_backward, sigmoid_backward, tanh_backward,
        leaky_relu_backward, elu_backward, _adaptive_avg_pool2d_backward, select_backward, slice_backward,
    )
}  # fmt: skip
FORMS["nll_loss2d_backward"] = nll_loss_backward
FORMS["mse_loss_backward"] = _of_loss("mse_loss")
FORMS["smooth_l1_loss_backward"] = _of_loss("smooth_l1_loss", "beta")
FORMS["huber_loss_backward"] = _of_loss("huber_loss", "delta")
for _name in ("hardtanh", "hardswish", "hardsigmoid", "avg_pool2d", "avg_pool3d", "softplus"):
    FORMS[f"{_name}_backward"] = _of_function(_name)
for _name in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d"):
    FORMS[f"upsample_{_name}_backward"] = _of_upsample(f"upsample_{_name}")
