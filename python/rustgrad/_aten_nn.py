"""Functions of `ops.aten` that are calls of `nn.functional`: numbers for reductions and modes, arguments in another order."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from . import _C
from ._base import Tensor

__all__: list[str] = []

_ops = _C.ops
_REDUCTIONS = ("none", "mean", "sum")
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _functional(name: str) -> Any:
    return getattr(importlib.import_module("rustgrad.nn.functional"), name)


def cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """`cross_entropy` with the number of a reduction."""
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
    return _functional("cross_entropy")(self, target, weight, reduction=_REDUCTIONS[reduction], **options)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss` with the number of a reduction."""
    lengths = (_one(input_lengths), _one(target_lengths))
    return _functional("ctc_loss")(log_probs, targets, *lengths, blank, _REDUCTIONS[reduction], zero_infinity)


def nll_loss_nd(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    """`nll_loss` with the number of a reduction."""
    return _functional("nll_loss")(self, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """`nll_loss` and the sum of the weights that it has divided by."""
    loss = nll_loss_nd(self, target, weight, reduction, ignore_index)
    kept = target != ignore_index
    weights = self.new_ones(()) if weight is None else weight[target.where(kept, target.new_zeros(()))]
    return loss, (weights * kept).sum().to(self.dtype) if reduction else self.new_zeros(())


def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    """`nn.functional.gelu`."""
    return _functional("gelu")(self, approximate=approximate)


def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """`scale * elu(self * input_scale)` where negative, `scale * self` elsewhere."""
    if input_scale == 1 and scale == 1:
        return _functional("elu")(self, float(alpha))
    return self.where(self > 0, alpha * (self * input_scale).expm1()) * scale


def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`nn.functional.leaky_relu`."""
    return _functional("leaky_relu")(self, float(negative_slope))


def glu(self: Tensor, dim: int = -1) -> Tensor:
    """`nn.functional.glu`."""
    return _functional("glu")(self, dim)


def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """`nn.functional.softplus`."""
    return _functional("softplus")(self, float(beta), float(threshold))


def log_sigmoid(self: Tensor) -> Tensor:
    """`nn.functional.logsigmoid`."""
    return _functional("logsigmoid")(self)


def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    """`log_sigmoid` with a buffer that a gradient could use, which is empty."""
    return log_sigmoid(self), self.new_empty(0)


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`."""
    return _functional("dropout")(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels, of tensors with any number of dimensions."""
    if not train or p == 0:
        return input * 1
    shape = [*input.shape[:2], *[1] * (input.dim() - 2)]
    return input * (_functional("dropout")(input.new_ones(shape), p, True))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`nn.functional.linear`."""
    return _functional("linear")(input, weight, bias)


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """`nn.functional.embedding` with its first arguments in the other order."""
    padding = None if padding_idx == -1 else padding_idx
    return _functional("embedding")(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`."""
    return _functional("layer_norm")(input, tuple(normalized_shape), weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.group_norm`."""
    return _functional("group_norm")(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`nn.functional.rms_norm`."""
    return _functional("rms_norm")(input, tuple(normalized_shape), weight, eps)


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm` with its arguments in another order."""
    return _functional("batch_norm")(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm` with its arguments in another order."""
    return _functional("instance_norm")(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the mean and the inverse deviation of the batch; `rest` has running statistics, or none."""
    if len(rest) == 5:
        return _ops["native_batch_norm"](input, weight, bias, *rest)
    training, momentum, eps = rest
    return _ops["native_batch_norm"](input, weight, bias, None, None, training, momentum, eps)


def _native_batch_norm_legit_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """`batch_norm` that returns the new running statistics and writes nothing."""
    mean, var = running_mean.clone(), running_var.clone()
    found = _ops["native_batch_norm"](input, weight, bias, mean, var, training, momentum, eps)
    return (*found, mean, var)


def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """`batch_norm` by running statistics."""
    result = batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, False)
    return result, input.new_empty(0), input.new_empty(0)


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax`, in float32 where asked."""
    return _ops["softmax"](self, dim, dtype=_C.float32 if half_to_float else None)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`log_softmax`, in float32 where asked."""
    return _ops["log_softmax"](self, dim, dtype=_C.float32 if half_to_float else None)


def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`nn.functional.pad`."""
    return _functional("pad")(self, tuple(pad), mode, value)


def _padding(mode: str) -> Callable[..., Any]:
    return lambda self, padding: pad(self, padding, mode)


def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """`nn.functional.one_hot`."""
    return _functional("one_hot")(self, num_classes)


def im2col(
    self: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """`nn.functional.unfold`."""
    return _functional("unfold")(self, tuple(kernel_size), tuple(dilation), tuple(padding), tuple(stride))


def col2im(
    self: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """`nn.functional.fold`."""
    sizes = (tuple(v) for v in (output_size, kernel_size, dilation, padding, stride))
    return _functional("fold")(self, *sizes)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers of modes."""
    return _functional("grid_sample")(
        input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners=align_corners
    )


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return _functional("affine_grid")(theta, tuple(size), align_corners=align_corners)


def _pool(name: str) -> Callable[..., Any]:
    def call(self: Tensor, kernel_size: Any, stride: Any = (), *rest: Any, **named: Any) -> Any:
        return _functional(name)(self, _one(kernel_size), _one(stride) or None, *map(_one, rest), **named)

    return call


def _one(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _adaptive(name: str) -> Callable[..., Any]:
    return lambda self, output_size: _functional(name)(self, _one(output_size))


def _adaptive_max(name: str) -> Callable[..., Any]:
    return lambda self, output_size: _functional(name)(self, _one(output_size), return_indices=True)


# In the order of the ops' arguments.
_UPSAMPLE_OPTIONS = ("align_corners", "scale_factors", "scales", "scales_d", "scales_h", "scales_w")


def _upsample(mode: str, dims: int, corners: bool, antialias: bool = False) -> Callable[..., Any]:
    """The ops of `interpolate`: with a list of factors (`.vec`), or a factor for each dimension."""

    def call(input: Tensor, output_size: Any, *rest: Any, **named: Any) -> Tensor:
        for name in named:
            if name not in _UPSAMPLE_OPTIONS:
                raise TypeError(f"upsample: got an unexpected keyword argument {name!r}")
        rest = (*rest, *(named[n] for n in _UPSAMPLE_OPTIONS if n in named))
        align = rest[0] if corners and rest else None
        factors = rest[1 if corners else 0 :]
        options: dict[str, Any] = {"mode": mode, "antialias": antialias, "align_corners": align}
        listed = len(factors) == 1 and isinstance(factors[0], (list, tuple))
        scales = factors[0] if listed else factors
        if output_size is None:
            return _functional("interpolate")(input, scale_factor=tuple(scales), **options)
        sizes = tuple(output_size)
        found = [s for s in scales or () if s is not None]
        if len(found) == dims and sizes == tuple(int(n * s) for n, s in zip(input.shape[2:], found)):
            return _functional("interpolate")(input, scale_factor=tuple(found), **options)
        return _functional("interpolate")(input, size=sizes, **options)

    return call


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`nn.functional.scaled_dot_product_attention`."""
    return _functional("scaled_dot_product_attention")(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`scaled_dot_product_attention`, with the logarithms of the sums of each row."""
    result = scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    if is_causal:
        hidden = _ops["ones"](scores.shape[-2:], dtype=_C.bool, device=query.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    if attn_mask is not None:
        scores = scores + attn_mask if attn_mask.dtype != _C.bool else scores.masked_fill(~attn_mask, float("-inf"))
    return result, scores.logsumexp(-1)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag`, with three results that a gradient could use, which are empty."""
    names = ("sum", "mean", "max")
    result = _functional("embedding_bag")(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, names[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    empty = indices.new_empty(0)
    return result, empty, empty.clone(), empty.clone()
