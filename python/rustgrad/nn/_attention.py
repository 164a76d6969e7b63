"""`multi_head_attention_forward`: projections, masks and heads around `scaled_dot_product_attention`."""

from __future__ import annotations

import math
import warnings

from .. import _base
from .._base import Tensor, cat, matmul, ops, zeros
from .._C import dtype
from ..overrides import overridable

__all__ = ["multi_head_attention_forward"]

_attention = ops["nn.functional.scaled_dot_product_attention"]
_dropout = ops["nn.functional.dropout"]
_linear = ops["nn.functional.linear"]
_softmax = ops["softmax"]


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the input is a batch: 3-d tensors; 2-d ones are a single sequence."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    n = query.dim()
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {n}-D"
            f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D"
            f" but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                f" but found {attn_mask.dim()}-D tensor instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.dim() == 3 and attn_mask.shape != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: dtype | None,
    other_name: str,
    target_type: dtype,
    check_other: bool = True,
) -> Tensor | None:
    """The mask as a float tensor that is added to scores: a true element of a bool mask is -inf."""
    if mask is None:
        return None
    if mask.dtype != _base.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    return zeros(mask.shape, dtype=target_type, device=mask.device).masked_fill_(mask, -math.inf)


def _none_or_dtype(input: Tensor | None) -> dtype | None:
    """The dtype of a tensor; None of None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _in_projection_packed(q, k, v, w, b=None):
    """The projections by the rows of one weight `(3E, E)`: of one tensor in one product."""
    size = q.size(-1)
    if k is v:
        if q is k:
            return _linear(q, w, b).chunk(3, -1)
        w_q, w_kv = w.split([size, 2 * size])
        b_q, b_kv = (None, None) if b is None else b.split([size, 2 * size])
        return (_linear(q, w_q, b_q), *_linear(k, w_kv, b_kv).chunk(2, -1))
    biases = (None, None, None) if b is None else b.chunk(3)
    return tuple(map(_linear, (q, k, v), w.chunk(3), biases))


def _in_projection(q, k, v, weights, b):
    """The projections by three weights `(E, Eq)`, `(E, Ek)`, `(E, Ev)`."""
    size = q.size(-1)
    for name, w, x in zip("qkv", weights, (q, k, v), strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        if w.shape != (size, x.size(-1)):
            raise AssertionError(f"expecting {name} weights shape of {(size, x.size(-1))}, but got {w.shape}")
    biases = (None, None, None) if b is None else b.chunk(3)
    return tuple(map(_linear, (q, k, v), weights, biases))


def _checked_mask(mask, target, source, heads):
    """A float mask as `(1 or N, 1 or num_heads, L, S)`."""
    if mask.dim() == 2:
        if mask.shape != (target, source):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(target, source)}.")
        return mask.view(1, 1, target, source)
    batch, num_heads = heads
    expected = (batch * num_heads, target, source)
    if mask.dim() != 3:
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if mask.shape != expected:
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {expected}.")
    return mask.view(batch, num_heads, target, source)


def _checked_static(t, name, heads, size):
    batch, num_heads = heads
    if t.size(0) != batch * num_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * num_heads}, but got {t.size(0)}")
    if t.size(2) != size:
        raise AssertionError(f"expecting {name}.size(2) of {size}, but got {t.size(2)}")
    return t.view(batch, num_heads, t.size(1), size)


def _one_more(mask):
    """The mask with one more key, which every query sees."""
    return None if mask is None else cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _masks(query, key, key_padding_mask, attn_mask, is_causal, need_weights):
    """(key padding mask, attention mask, whether attention is causal), the masks as floats."""
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
    return key_padding_mask, attn_mask, False


def _check_projected(query, key, value, embed_dim, num_heads, separate, in_proj_weight):
    if query.size(-1) != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {query.size(-1)}")
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")


def _check_bias_kv(bias_k, bias_v, static_k, static_v):
    if (bias_k is None) != (bias_v is None):
        given, missing = ("k", "v") if bias_v is None else ("v", "k")
        raise AssertionError(f"bias_{given} is set but bias_{missing} is None")
    if bias_k is not None:
        for name, t in (("key", static_k), ("value", static_v)):
            if t is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")


@overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention: (output `(L, N, E)`, weights `(N, L, S)` or None).

    Args:
        query, key, value: `(L, N, E)`, `(S, N, Ek)`, `(S, N, Ev)`, or without N.
        in_proj_weight, in_proj_bias: `(3E, E)` and `(3E)`, for equal sizes; else q/k/v_proj_weight.
        bias_k, bias_v: `(1, 1, E)`, one more key and value of every sequence.
        add_zero_attn (bool): one more key and value of zeros.
        key_padding_mask: `(N, S)`; bool (true: the key is ignored) or float (added to the scores).
        attn_mask: `(L, S)` or `(N * num_heads, L, S)`, likewise.
        static_k, static_v: `(N * num_heads, S, E / num_heads)` instead of the projected ones.
        average_attn_weights (bool): whether the weights are averaged over the heads, or `(N, num_heads, L, S)`.
        is_causal (bool): a hint that `attn_mask` is the causal mask.

    Raises:
        AssertionError, RuntimeError: sizes do not fit together, or a mask is neither bool nor float.

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same, twin = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = key if twin else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    key_padding_mask, attn_mask, is_causal = _masks(query, key, key_padding_mask, attn_mask, is_causal, need_weights)
    _check_projected(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight, in_proj_weight)
    _check_bias_kv(bias_k, bias_v, static_k, static_v)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _in_projection(query, key, value, weights, in_proj_bias)
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    target, batch, size = query.shape
    heads = (batch, num_heads)
    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, target, key.size(0), heads)
    if bias_k is not None:
        k, v = cat([k, bias_k.expand(1, batch, size)]), cat([v, bias_v.expand(1, batch, size)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    width = size // num_heads
    q, k, v = (t.view(t.size(0), *heads, width).permute(1, 2, 0, 3) for t in (q, k, v))
    k = k if static_k is None else _checked_static(static_k, "static_k", heads, width)
    v = v if static_v is None else _checked_static(static_v, "static_v", heads, width)
    if add_zero_attn:
        k, v = (cat([t, t.new_zeros((*heads, 1, width))], 2) for t in (k, v))
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    if key_padding_mask is not None:
        for i, want in ((0, batch), (1, k.size(2))):
            if key_padding_mask.size(i) != want:
                got = key_padding_mask.size(i)
                raise AssertionError(f"Expected key_padded_mask.shape[{i}] to be {want}, but got {got}")
        padding = key_padding_mask.view(batch, 1, 1, k.size(2))
        attn_mask = padding if attn_mask is None else attn_mask + padding
    weights = None
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scores = matmul(q * math.sqrt(1.0 / width), k.transpose(-2, -1))
        weights = _softmax(scores if attn_mask is None else scores + attn_mask, -1)
        weights = _dropout(weights, dropout_p) if dropout_p > 0.0 else weights
        output = matmul(weights, v)
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    else:
        output = _attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = _linear(output.permute(2, 0, 1, 3).reshape(target * batch, size), out_proj_weight, out_proj_bias)
    output = output.view(target, batch, output.size(1))
    return output if batched else output.squeeze(1), weights
