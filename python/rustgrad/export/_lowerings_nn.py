"""Lowerings of functions of `nn.functional`."""

from __future__ import annotations

import inspect
import math
from typing import Any

from .._base import Tensor
from ._lowering_table import lower, table

__all__: list[str] = []

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


# --- activations


def _activation(key: str, given: str = "") -> None:
    """`relu(input, inplace)` and the like; `given` are parameters in between with their defaults."""
    names = [p.split("=") for p in given.split()]

    def call(r, input, *args, **kwargs):
        values = dict(zip([*(n for n, _ in names), "inplace"], args))
        values.update(kwargs)
        inplace = values.pop("inplace", False)
        found = [values.get(n, float(usual)) for n, usual in names]
        usual = key == "leaky_relu" and found == [0.01]
        return r(key + ("_" if inplace else ""), input, *([] if usual else found))

    table[key] = call


for _key in ("relu", "relu6", "silu", "mish", "selu", "hardswish", "hardsigmoid"):
    _activation(_key)
_activation("leaky_relu", "negative_slope=0.01")
_activation("elu", "alpha=1.0")
_activation("hardtanh", "min_val=-1.0 max_val=1.0")


@lower("celu")
def _(r, input, alpha=1.0, inplace=False):
    return r("celu_" if inplace else "celu", input, *([] if alpha == 1 else [float(alpha)]))


@lower("threshold")
def _(r, input, threshold, value, inplace=False):
    return r("threshold_" if inplace else "threshold", input, threshold, value)


@lower("rrelu")
def _(r, input, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    usual = (lower, upper) == (1 / 8, 1 / 3)
    given = {} if usual else {"lower": lower, "upper": upper}
    return r("rrelu_" if inplace else "rrelu", input, **given, **({"training": True} if training else {}))


@lower("softplus")
def _(r, input, beta=1.0, threshold=20.0):
    usual = {} if beta == 1 and threshold == 20 else {"beta": beta, "threshold": threshold}
    return r("softplus", input, **usual)


@lower("softsign")
def _(r, input):
    return r("div", input, r("add", r("abs", input), 1))


@lower("tanhshrink")
def _(r, input):
    return r("sub", input, r("tanh", input))


@lower("softmax")
def _(r, input, dim=None, *rest, dtype=None, _stacklevel=3):
    dtype = rest[-1] if rest and not isinstance(rest[-1], int) else dtype
    return r("softmax", input, _softmax_dim(input, dim), dtype=dtype)


@lower("log_softmax")
def _(r, input, dim=None, *rest, dtype=None, _stacklevel=3):
    dtype = rest[-1] if rest and not isinstance(rest[-1], int) else dtype
    return r("log_softmax", input, _softmax_dim(input, dim), dtype=dtype)


@lower("softmin")
def _(r, input, dim=None, _stacklevel=3, dtype=None):
    return r("softmax", r("neg", input), _softmax_dim(input, dim), dtype=dtype)


def _softmax_dim(input: Tensor, dim: int | None) -> int:
    return (0 if input.dim() in (0, 1, 3) else 1) if dim is None else dim


@lower("gumbel_softmax")
def _(r, logits, tau=1, hard=False, eps=1e-10, dim=-1):
    from .._formats import contiguous_format

    noise = r("exponential_", r("empty_like", logits, memory_format=contiguous_format))
    soft = r("softmax", r("div", r("add", logits, r("neg", r("log", noise))), tau), dim)
    if not hard:
        return soft
    index = r("max", soft, dim, keepdim=True)[1]
    ones = r("scatter_", r("zeros_like", logits, memory_format=contiguous_format), dim, index, 1.0)
    return r("add", r("sub", ones, r("detach", soft)), soft)


# --- dropout


@lower("dropout")
def _(r, input, p=0.5, training=True, inplace=False, train=None):
    return r("dropout_" if inplace else "dropout", input, p, training if train is None else train)


def _feature(r, input, p=0.5, training=True, inplace=False):
    return r("feature_dropout_" if inplace else "feature_dropout", input, p, training)


@lower("dropout1d")
def _(r, input, p=0.5, training=True, inplace=False):
    if input.dim() == 3:
        return _feature(r, input, p, training, inplace)
    return r("squeeze", _feature(r, r("unsqueeze", input, 0), p, training, inplace), 0)


@lower("dropout2d")
def _(r, input, p=0.5, training=True, inplace=False):
    return _feature(r, input, p, training, inplace)


@lower("dropout3d")
def _(r, input, p=0.5, training=True, inplace=False):
    if input.dim() == 5:
        return _feature(r, input, p, training, inplace)
    return r("squeeze", _feature(r, r("unsqueeze", input, 0), p, training, inplace), 0)


@lower("alpha_dropout")
def _(r, input, p=0.5, training=False, inplace=False):
    return r("alpha_dropout_" if inplace else "alpha_dropout", input, p, training)


@lower("feature_alpha_dropout")
def _(r, input, p=0.5, training=False, inplace=False):
    return r("feature_alpha_dropout_" if inplace else "feature_alpha_dropout", input, p, training)


# --- norms


@lower("batch_norm")
def _(r, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    return r("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps, False)


@lower("torch_batch_norm")
def _(r, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    return r("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps, False)


@lower("instance_norm")
def _(r, input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):  # fmt: skip
    return r("instance_norm", input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@lower("group_norm")
def _(r, input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return r("group_norm", input, num_groups, weight, bias, eps, False)


@lower("layer_norm")
def _(r, input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return r("layer_norm", input, list(normalized_shape), weight, bias, eps, False)


@lower("normalize")
def _(r, input, p=2.0, dim=1, eps=1e-12, *, out=None):
    dims = [dim] if isinstance(dim, int) else list(dim)
    norm = r("clamp_min", r("linalg_vector_norm", input, p, dims, True), eps)
    return r.out(out, r("div", input, r("expand_as", norm, input)))


@lower("norm")
def _(r, input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    if p == "nuc":
        return r.out(out, r("nuclear_norm", input, *([] if dim is None else [list(dim)]), keepdim))
    dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    p = 2 if p in ("fro", None) else p
    return r.out(out, r("linalg_vector_norm", input, p, dims, keepdim, dtype=dtype))


# --- embeddings


@lower("embedding")
def _(r, input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if padding_idx is not None and padding_idx < 0:
        padding_idx = weight.size(0) + padding_idx
    if max_norm is not None:
        input = r("contiguous", input)
        r("embedding_renorm_", r("detach", weight), input, max_norm, norm_type)
    return r("embedding", weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


@lower("torch_embedding")
def _(r, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return r("embedding", weight, indices, padding_idx, scale_grad_by_freq, sparse)


@lower("embedding_bag")
def _(r, input, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):  # fmt: skip
    if input.dim() == 2:
        offsets = r("arange", 0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = r("reshape", input, [-1])
        if per_sample_weights is not None:
            per_sample_weights = r("reshape", per_sample_weights, [-1])
    kind = {"sum": 0, "mean": 1, "max": 2}[mode]
    rest = (scale_grad_by_freq, kind, sparse, per_sample_weights, include_last_offset, padding_idx)
    return r.overload("embedding_bag", "padding_idx", weight, input, offsets, *rest)[0]


# --- pooling


def _max_pool(dims: int) -> None:
    def call(r, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        name = f"max_pool{dims}d" + ("_with_indices" if return_indices else "")
        stride = [] if stride is None else stride
        return r(name, input, kernel_size, stride, padding, dilation, ceil_mode)

    table[f"max_pool{dims}d"] = call
    table[f"max_pool{dims}d_with_indices"] = lambda r, *a, **k: call(r, *a, **{**k, "return_indices": True})

    def adaptive(r, input, output_size, return_indices=False):
        found = r(f"adaptive_max_pool{dims}d", input, _sizes(input, output_size, dims))
        return found if return_indices else found[0]

    table[f"adaptive_max_pool{dims}d"] = adaptive
    table[f"adaptive_max_pool{dims}d_with_indices"] = lambda r, i, o, n=False: adaptive(r, i, o, True)
    table[f"adaptive_avg_pool{dims}d"] = lambda r, input, output_size: r(
        f"adaptive_avg_pool{dims}d", input, _sizes(input, output_size, dims)
    )

    def average(r, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):  # fmt: skip
        stride = [] if stride is None else stride
        rest = [] if dims == 1 else [divisor_override]
        return r(f"avg_pool{dims}d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, *rest)

    table[f"avg_pool{dims}d"] = average


def _sizes(input: Tensor, output_size: Any, dims: int) -> list[int]:
    given = [output_size] * dims if isinstance(output_size, int) or output_size is None else list(output_size)
    return [input.shape[i - dims] if n is None else n for i, n in enumerate(given)]


for _dims in (1, 2, 3):
    _max_pool(_dims)


@lower("interpolate", "upsample")
def _(r, input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):  # fmt: skip
    dims = input.dim() - 2
    size = [size] * dims if isinstance(size, int) else None if size is None else list(size)
    scales = None
    if scale_factor is not None:
        given = [scale_factor] * dims if isinstance(scale_factor, (int, float)) else list(scale_factor)
        scales = [float(s) for s in given]
        if recompute_scale_factor:
            size, scales = [int(n * s) for n, s in zip(input.shape[2:], scales)], None
    if mode == "area":
        if size is None:
            size = [int(n * s) for n, s in zip(input.shape[2:], scales or [])]
        return r(f"adaptive_avg_pool{dims}d", input, size)
    if mode in ("nearest", "nearest-exact"):
        name = f"upsample_nearest{dims}d" if mode == "nearest" else f"_upsample_nearest_exact{dims}d"
        return r.overload(name, "vec", input, size, scales)
    name = f"upsample_{mode}{'1d' if dims == 1 else f'{dims}d'}"
    return r.overload(f"_{name}_aa" if antialias else name, "vec", input, size, bool(align_corners), scales)


@lower("grid_sample")
def _(r, input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return r("grid_sampler", input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners))


@lower("affine_grid")
def _(r, theta, size, align_corners=None):
    return r("affine_grid_generator", theta, list(size), bool(align_corners))


def _two(value: Any) -> list[int]:
    return [value] * 2 if isinstance(value, int) else list(value)


@lower("im2col")
def _(r, input, kernel_size, dilation=1, padding=0, stride=1):
    return r("im2col", input, *map(_two, (kernel_size, dilation, padding, stride)))


@lower("col2im")
def _(r, input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return r("col2im", input, *map(_two, (output_size, kernel_size, dilation, padding, stride)))


@lower("pad")
def _(r, input, pad, mode="constant", value=None):
    return r("pad", input, list(pad), mode, None if value is None else float(value))


# --- losses


def _arguments(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a function of `nn.functional` by name, with its defaults."""
    from ..nn import functional

    bound = inspect.signature(getattr(functional, key)).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _loss(key: str, name: str, ordered: str, broadcasts: bool = False) -> None:
    """A loss: `ordered` are the arguments of the op after the tensors; deprecated ones have become `reduction`."""

    def call(r, *args, **kwargs):
        given = _arguments(key, args, kwargs)
        reduction = given.get("reduction", "mean")
        if given.get("size_average") is not None or given.get("reduce") is not None:
            average, reduce = given.get("size_average"), given.get("reduce")
            reduction = "none" if reduce is False else "sum" if average is False else "mean"
        given["reduction"] = _REDUCTIONS["sum" if reduction == "batchmean" else reduction]
        values = [given[n] for n in ordered.split()]
        if broadcasts:
            values[:2] = r("broadcast_tensors", values[0], values[1])
        result = r(name, **dict(zip(ordered.split(), values)))
        return r("div", result, given["input"].size(0)) if reduction == "batchmean" else result

    table[key] = call


for _key, _ordered, _broadcasts in (
    ("mse_loss", "input target reduction", True), ("l1_loss", "input target reduction", True),
    ("smooth_l1_loss", "input target reduction beta", True), ("huber_loss", "input target reduction delta", True),
    ("kl_div", "input target reduction log_target", False), ("binary_cross_entropy", "input target weight reduction", False),
    ("binary_cross_entropy_with_logits", "input target weight pos_weight reduction", False),
    ("soft_margin_loss", "input target reduction", False), ("hinge_embedding_loss", "input target margin reduction", False),
    ("margin_ranking_loss", "input1 input2 target margin reduction", False),
    ("cosine_embedding_loss", "input1 input2 target margin reduction", False),
    ("triplet_margin_loss", "anchor positive negative margin p eps swap reduction", False),
    ("multi_margin_loss", "input target p margin weight reduction", False),
    ("multilabel_margin_loss", "input target reduction", False),
    ("poisson_nll_loss", "input target log_input full eps reduction", False),
):  # fmt: skip
    _loss(_key, _key, _ordered, _broadcasts)
_loss("cross_entropy", "cross_entropy_loss", "input target weight reduction ignore_index label_smoothing")
_loss("nll_loss", "nll_loss_nd", "input target weight reduction ignore_index")


@lower("ctc_loss")
def _(r, log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    kind = _REDUCTIONS[reduction] if isinstance(reduction, str) else reduction
    return r("ctc_loss", log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)


@lower("gaussian_nll_loss")
def _(r, input, target, var, full=False, eps=1e-6, reduction="mean"):
    # The bound has no gradient of its own.
    bounded = r("add", var, r("detach", r("sub", r("clamp", var, eps), var)))
    error = r("pow", r("sub", input, target), 2)
    loss = r("mul", r("add", r("log", bounded), r("div", error, bounded)), 0.5)
    if full:
        loss = r("add", loss, 0.5 * math.log(2 * math.pi))
    return loss if reduction == "none" else r(reduction, loss)


@lower("multilabel_soft_margin_loss")
def _(r, input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    positive = r("mul", target, r("log_sigmoid", input))
    negative = r("mul", r("rsub", target, 1), r("log_sigmoid", r("neg", input)))
    loss = r("neg", r("add", positive, negative))
    loss = loss if weight is None else r("mul", loss, weight)
    loss = r("div", r("sum", loss, [input.dim() - 1]), input.size(input.dim() - 1))
    return loss if reduction == "none" else r(reduction, loss)
