"""Ops of `aten` as TorchScript calls them, where that differs from `ops.aten`: dtypes and formats are numbers, results are lists,
a constant may be written to. Ops that only archives have are here too.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _C, linalg
from .._aten_forms import find as find_form
from .._base import Tensor
from ..nn import functional as F
from ..nn.utils import rnn as nn_rnn
from ._codes import code_of, dtype_of, format_of, layout_of

ops = _C.ops


# --- questions to tensors


def size(x: Tensor, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[dim]


def stride(x: Tensor, dim: int | None = None) -> Any:
    return list(x.stride()) if dim is None else x.stride(dim)


def len_(x: Tensor) -> int:
    return x.shape[0]


def is_contiguous(x: Tensor, memory_format: int | None = None) -> bool:
    return x.is_contiguous() if memory_format is None else x.is_contiguous(memory_format=format_of(memory_format))


def result_type(a: Any, b: Any) -> int | None:
    return code_of(_top().result_type(a, b))


def promote_types(a: int, b: int) -> int | None:
    return code_of(_top().promote_types(dtype_of(a), dtype_of(b)))


def _top() -> Any:
    import rustgrad

    return rustgrad


# --- making and converting


def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`to(other)`, `to(dtype)` or `to(device, dtype)`, each with non_blocking, copy and memory_format after it."""
    target, rest = (args[0], args[1:]) if args else (None, ())
    names = ["non_blocking", "copy", "memory_format"]
    if isinstance(target, Tensor):
        given = {"device": target.device, "dtype": target.dtype}
    elif type(target) is int:
        given = {"dtype": target}
    else:
        given = {"device": target}
        names.insert(0, "dtype")
    given |= dict(zip(names, rest, strict=False)) | kwargs
    given.pop("non_blocking", None)
    given.pop("pin_memory", None)
    layout_of(given.pop("layout", None))
    given["dtype"], given["memory_format"] = dtype_of(given.get("dtype")), format_of(given.get("memory_format"))
    return x.to(**{k: v for k, v in given.items() if v is not None})


def type_as(x: Tensor, other: Tensor) -> Tensor:
    return x.to(other.dtype)


def _caster(name: str) -> Any:
    def cast(x: Tensor, non_blocking: bool = False) -> Tensor:
        return x.to(vars(_C)[name])

    return cast


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return _top().tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return _top().as_tensor(data, dtype=dtype, device=device)


def _reshape_alias(x: Tensor, size: list[int], stride: list[int]) -> Tensor:
    return x.as_strided(size, stride)


def unfold_copy(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    return x.unfold(dimension, size, step).clone()


def _at_least(name: str) -> Any:
    """Of one tensor, or of a list."""

    def call(x: Any) -> Any:
        function = getattr(_top(), name)
        return function(x) if isinstance(x, Tensor) else list(function(*x))

    return call


def unique_dim(
    x: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    return _three(ops["unique"](x, sorted, return_inverse, return_counts, dim), x, return_inverse, return_counts)


def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    return _three(ops["unique_consecutive"](x, return_inverse, return_counts, dim), x, return_inverse, return_counts)


def _three(found: Any, x: Tensor, inverse: bool, counts: bool) -> Any:
    """Values, inverse and counts, empty tensors for what was not asked for."""
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    empty = x.new_empty(0, dtype=_C.int64)
    values = parts.pop(0)
    return values, parts.pop(0) if inverse else empty, parts.pop(0) if counts else empty


def repeat_interleave(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    if not args or args[0] is None:
        return _top().arange(len(x), device=x.device).repeat_interleave(x)
    return x.repeat_interleave(*args, **kwargs)


def scatter(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    return _scattered(x.scatter, dim, index, src, reduce)


def scatter_(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    return _scattered(x.scatter_, dim, index, src, reduce)


def _scattered(method: Any, dim: int, index: Tensor, src: Any, reduce: str | None) -> Tensor:
    kind = {} if reduce is None else {"reduce": reduce}
    return method(dim, index, src, **kind) if isinstance(src, Tensor) else method(dim, index, value=src, **kind)


def frobenius_norm(x: Tensor, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return linalg.vector_norm(x, 2, dim or None, keepdim)


def nuclear_norm(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if isinstance(dim, bool) or dim is None:
        dim, keepdim = (-2, -1), bool(dim) or keepdim
    return linalg.matrix_norm(x, "nuc", tuple(dim), keepdim)


def _assert_tensor_metadata(*args: Any, **kwargs: Any) -> None:
    pass


def unique_dim_consecutive(x: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _three(ops["unique_consecutive"](x, return_inverse, return_counts, dim), x, return_inverse, return_counts)


def lift_fresh(x: Tensor) -> Tensor:
    """A constant of the program, which it may write to."""
    return x.clone()


def nonzero_numpy(x: Tensor) -> list[Tensor]:
    return list(x.nonzero(as_tuple=True))


def pad_sequence(
    sequences: list[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    return nn_rnn.pad_sequence(sequences, batch_first, padding_value, padding_side)


def is_scripting() -> bool:
    return True


def _shape_as_tensor(x: Tensor) -> Tensor:
    return _C.tensor(list(x.shape))


def max_unpool2d(x: Tensor, indices: Tensor, output_size: list[int]) -> Tensor:
    return ops["_max_unpool2d"](x, indices, output_size)


def max_unpool3d(x: Tensor, indices: Tensor, output_size: list[int], stride: list[int], padding: list[int]) -> Tensor:
    return ops["_max_unpool3d"](x, indices, output_size)


def stft(
    x: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, *rest: Any, **named: Any
) -> Tensor:
    """With `center` and `pad_mode` after the window where a mode is given, else on the signal as it is."""
    names = ["normalized", "onesided", "return_complex", "align_to_window"]
    if len(rest) > 1 and isinstance(rest[1], str) or "pad_mode" in named:
        names = ["center", "pad_mode", *names]
    else:
        named["center"] = False
    return _top().stft(x, n_fft, hop_length, win_length, window, **dict(zip(names, rest, strict=False)), **named)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    return ops["cdist"](x1, x2, p, modes[compute_mode or 0])


# --- layers


def _convolution(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int, *settings: bool) -> Tensor:  # fmt: skip
    return ops["convolution"](input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Tensor:
    return ops[f"conv{weight.dim() - 2}d"](input, weight, bias, stride, padding, dilation, groups)


def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor,
                                 qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Any = None,
                                 need_weights: bool = True, average_attn_weights: bool = True, mask_type: Any = None) -> Any:  # fmt: skip
    """Attention of batches first with packed projections; masks are true where a key is left out."""
    batch, length, _ = query.shape
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = (
        F.linear(x, w, b).view(batch, x.shape[1], num_head, -1).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    scores = q @ k.transpose(2, 3) / math.sqrt(embed_dim / num_head)
    if mask is not None:
        mask = mask[:, None, None, :] if mask_type == 1 else mask
        scores = scores.masked_fill(mask, -math.inf) if mask.dtype == _C.bool else scores + mask
    attention = scores.softmax(-1)
    result = F.linear((attention @ v).transpose(1, 2).reshape(batch, length, embed_dim), proj_weight, proj_bias)
    if not need_weights:
        return result, query.new_empty(0)
    return result, attention.mean(1) if average_attn_weights else attention


def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
                                   proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
                                   norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
                                   ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
                                   mask: Any = None, mask_type: Any = None) -> Tensor:  # fmt: skip
    """A layer of a Transformer's encoder without dropout."""

    def first(x: Tensor) -> Tensor:
        return F.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Tensor:
        return F.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        return _native_multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )[0]  # fmt: skip

    def feed(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(first(src))
        return x + feed(second(x))
    x = first(src + attend(src))
    return second(x + feed(x))


def _nested_tensor_from_mask_left_aligned(x: Tensor, mask: Tensor) -> bool:
    """Whether padding may be left out by way of a nested tensor: here it is masked."""
    return False


def thnn_conv2d(
    x: Tensor, weight: Tensor, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> Tensor:
    return ops["conv2d"](x, weight, bias, stride, padding)


def elu_(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    return x.copy_(find_form("elu")(x, alpha, scale, input_scale))


def rrelu_with_noise(x: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False,
                     generator: Any = None) -> Tensor:  # fmt: skip
    return F.rrelu(x, lower, upper, training)


def _pad_circular(x: Tensor, pad: list[int]) -> Tensor:
    return F.pad(x, pad, "circular")


def _masked_softmax(x: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    mask = mask[:, None, None, :] if mask_type == 1 else mask
    return x.masked_fill(mask, -math.inf).softmax(-1 if dim is None else dim)


# --- modes and other state


def set_grad_enabled(mode: bool) -> None:
    _top().set_grad_enabled(mode)


def get_autocast_dtype(device_type: str) -> int | None:
    return code_of(_top().get_autocast_dtype(device_type))


def is_autocast_enabled(*device: Any) -> bool:
    return _top().is_autocast_enabled()


def _table() -> dict[str, Any]:
    helpers = ("_top", "_at_least", "_caster", "_three", "_scattered", "_table")
    own = {n: f for n, f in globals().items() if callable(f) and getattr(f, "__module__", "") == __name__}
    made = {n: f for n, f in own.items() if n not in helpers}
    made["len"] = made.pop("len_")
    made |= {f"atleast_{dims}d": _at_least(f"atleast_{dims}d") for dims in (1, 2, 3)}
    made["gelu_"] = lambda x, *, approximate="none": x.copy_(F.gelu(x, approximate=approximate))
    names = {"Byte": "uint8", "Char": "int8", "Double": "float64", "Float": "float32", "Half": "float16", "Int": "int32",
             "Long": "int64", "Short": "int16"}  # fmt: skip
    return made | {f"_cast_{k}": _caster(v) for k, v in names.items()}


NATIVES = _table()
