"""Gradients of layers and losses."""

from __future__ import annotations

from typing import Any

from .._ops import ops
from ._formulas import gradient_of, run

__all__: list[str] = []

aten = ops.aten


@gradient_of(aten._softmax.default, saves="result")
def _softmax(c: Any, g: Any) -> Any:
    return {"self": run(aten._softmax_backward_data.default, g, c.result, c.dim, c.shape("self").dtype)}


@gradient_of(aten._log_softmax.default, saves="result")
def _log_softmax(c: Any, g: Any) -> Any:
    return {"self": run(aten._log_softmax_backward_data.default, g, c.result, c.dim, c.shape("self").dtype)}


@gradient_of(aten.nll_loss_forward.default, saves="self target weight result1")
def _nll_loss(c: Any, g: Any) -> Any:
    rest = (c.self_, c.target, c.weight, c.reduction, c.ignore_index, c.result1)
    return {"self": run(aten.nll_loss_backward.default, g[0], *rest)}


@gradient_of(aten.nll_loss2d_forward.default, saves="self target weight result1")
def _nll_loss2d(c: Any, g: Any) -> Any:
    rest = (c.self_, c.target, c.weight, c.reduction, c.ignore_index, c.result1)
    return {"self": run(aten.nll_loss2d_backward.default, g[0], *rest)}


def _between(name: str, *rest: str) -> None:
    """A loss of the difference of two tensors, whose gradient by the target is that by the input with both exchanged."""
    backward = getattr(aten, f"{name}_backward").default

    @gradient_of(getattr(aten, name).default, saves="self target")
    def formula(c: Any, g: Any) -> Any:
        settings = [c.reduction, *(getattr(c, n) for n in rest)]
        found = {}
        if c.needs("self"):
            found["self"] = run(backward, g, c.self_, c.target, *settings)
        if c.needs("target"):
            found["target"] = run(backward, g, c.target, c.self_, *settings)
        return found


_between("mse_loss")
_between("smooth_l1_loss", "beta")
_between("huber_loss", "delta")


@gradient_of(aten.binary_cross_entropy_with_logits.default, saves="self target weight pos_weight")
def _bce_with_logits(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        found["self"] = _of_logits(c, g, _by_logits(c))
    if c.needs("target"):
        found["target"] = c.fitted("target", _of_logits(c, g, _by_target(c)))
    return found


def _by_logits(c: Any) -> Any:
    chance = run(aten.sigmoid.default, c.self_)
    if c.pos_weight is None:
        return run(aten.sub.Tensor, chance, c.target)
    weighted = run(aten.mul.Tensor, c.pos_weight, c.target)
    total = run(aten.sub.Tensor, run(aten.add.Scalar, weighted, 1), c.target)
    return run(aten.sub.Tensor, run(aten.mul.Tensor, total, chance), weighted)


def _by_target(c: Any) -> Any:
    negative = run(aten.neg.default, c.self_)
    if c.pos_weight is None:
        return negative
    weighted = run(aten.mul.Tensor, run(aten.log_sigmoid.default, c.self_), c.pos_weight)
    return run(aten.sub.Tensor, run(aten.log_sigmoid.default, negative), weighted)


def _of_logits(c: Any, g: Any, made: Any) -> Any:
    made = run(aten.mul.Tensor, made, g)
    made = made if c.weight is None else run(aten.mul.Tensor, made, c.weight)
    return run(aten.div_.Scalar, made, c.shape("self").numel()) if c.reduction == 1 else made


@gradient_of(aten.embedding.default, saves="indices")
def _embedding(c: Any, g: Any) -> Any:
    rest = (c.shape("weight").shape[0], c.padding_idx, c.scale_grad_by_freq)
    return {"weight": run(aten.embedding_dense_backward.default, g, c.indices, *rest)}


def _mask(c: Any, *names: str) -> list[bool]:
    return [bool(c.needs(n)) for n in names]


def _several(c: Any, found: Any, *names: str) -> Any:
    return {n: t for n, t in zip(names, found) if t is not None}


@gradient_of(aten.native_layer_norm.default, saves="input weight bias result1 result2")
def _layer_norm(c: Any, g: Any) -> Any:
    names = ("input", "weight", "bias")
    rest = (c.input, list(c.normalized_shape), c.result1, c.result2, c.weight, c.bias, _mask(c, *names))
    return _several(c, run(aten.native_layer_norm_backward.default, g[0], *rest), *names)


@gradient_of(aten.native_group_norm.default, saves="input weight result1 result2")
def _group_norm(c: Any, g: Any) -> Any:
    names = ("input", "weight", "bias")
    rest = (c.input, c.result1, c.result2, c.weight, c.N, c.C, c.HxW, c.group, _mask(c, *names))
    return _several(c, run(aten.native_group_norm_backward.default, g[0], *rest), *names)


@gradient_of(aten.native_batch_norm.default, saves="input weight running_mean running_var result1 result2")
def _batch_norm(c: Any, g: Any) -> Any:
    names = ("input", "weight", "bias")
    known = (c.input, c.weight, c.running_mean, c.running_var, c.result1, c.result2)
    return _several(
        c, run(aten.native_batch_norm_backward.default, g[0], *known, c.training, c.eps, _mask(c, *names)), *names
    )


@gradient_of(aten.convolution.default, saves="input weight")
def _convolution(c: Any, g: Any) -> Any:
    names = ("input", "weight", "bias")
    sizes = [0] if c.bias is None else list(c.shape("bias").shape)
    rest = (list(c.stride), list(c.padding), list(c.dilation), c.transposed, list(c.output_padding), c.groups)
    found = run(aten.convolution_backward.default, g, c.input, c.weight, sizes, *rest, _mask(c, *names))
    return _several(c, found, *names)


@gradient_of(aten.max_pool2d_with_indices.default, saves="self result1")
def _max_pool2d(c: Any, g: Any) -> Any:
    kernel, stride, padding, dilation = (_pair(getattr(c, n)) for n in ("kernel_size", "stride", "padding", "dilation"))
    rest = (kernel, stride or kernel, padding, dilation, c.ceil_mode, c.result1)
    return {"self": run(aten.max_pool2d_with_indices_backward.default, g[0], c.self_, *rest)}


def _pair(value: Any) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * 2 if len(values) == 1 else values


@gradient_of(aten.avg_pool2d.default, saves="self")
def _avg_pool2d(c: Any, g: Any) -> Any:
    kernel, stride, padding = (_pair(getattr(c, n)) for n in ("kernel_size", "stride", "padding"))
    rest = (kernel, stride or kernel, padding, c.ceil_mode, c.count_include_pad, c.divisor_override)
    return {"self": run(aten.avg_pool2d_backward.default, g, c.self_, *rest)}


@gradient_of(aten._adaptive_avg_pool2d.default, saves="self")
def _adaptive_avg_pool2d(c: Any, g: Any) -> Any:
    return {"self": run(aten._adaptive_avg_pool2d_backward.default, g, c.self_)}


@gradient_of(aten.upsample_nearest2d.default)
def _upsample_nearest2d(c: Any, g: Any) -> Any:
    rest = (list(c.output_size), list(c.shape("self").shape), c.scales_h, c.scales_w)
    return {"self": run(aten.upsample_nearest2d_backward.default, g, *rest)}


@gradient_of(aten.upsample_bilinear2d.default)
def _upsample_bilinear2d(c: Any, g: Any) -> Any:
    rest = (list(c.output_size), list(c.shape("self").shape), c.align_corners, c.scales_h, c.scales_w)
    return {"self": run(aten.upsample_bilinear2d_backward.default, g, *rest)}


@gradient_of(aten._scaled_dot_product_flash_attention_for_cpu.default, saves="query key value result result1 attn_mask")
def _attention(c: Any, g: Any) -> Any:
    given = (c.query, c.key, c.value, c.result, c.result1, c.dropout_p, c.is_causal)
    named = {"attn_mask": c.attn_mask} | ({} if c.scale is None else {"scale": c.scale})
    found = run(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, g[0], *given, **named)
    return dict(zip(("query", "key", "value"), found))
