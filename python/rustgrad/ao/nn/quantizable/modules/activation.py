"""Attention whose projections are modules, so that each can be observed and quantised."""

from __future__ import annotations

import math
from typing import Any

import rustgrad as torch

from ..... import nn
from .....nn import functional as F

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """Attention with linear layers for queries, keys and values: see `nn.MultiheadAttention`.

    The product of queries and keys, softmax and the product with values are computed in float32.
    """

    _FLOAT_MODULE: Any = nn.MultiheadAttention
    __constants__ = ["batch_first"]

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: Any = None, vdim: Any = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        from .....ao.quantization import DeQuantStub, QuantStub
        from ...quantized.modules.functional_modules import FloatFunctional

        options = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, **options
        )
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, bias=bias, **options)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, bias=bias, **options)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)  # type: ignore[assignment]
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self):
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """The module of a float one with a configuration, which is observed. AssertionError: another class."""
        from .....ao.quantization import prepare, prepare_qat

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None,
            other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.chunk(3)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        layers = (made.linear_Q, made.linear_K, made.linear_V)
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight = nn.Parameter(weight.detach().clone())
            layer.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        if other.training:
            return prepare_qat(made.train(), inplace=True)
        return prepare(made.eval(), inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantised module of an observed one."""
        from ...quantized.modules.activation import MultiheadAttention as Quantized

        return Quantized.from_observed(other)

    def forward(  # type: ignore[override]
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The results and, if asked, the attention weights: see `nn.MultiheadAttention`."""
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        steps, batch, _ = query.shape
        head = self.embed_dim // self.num_heads

        def heads(x: Any, stub: Any) -> Any:
            return stub(x.contiguous().view(-1, batch * self.num_heads, head).transpose(0, 1))

        q = heads(self.linear_Q(query), self.dequant_q) * (1.0 / math.sqrt(head))
        k, v = heads(self.linear_K(key), self.dequant_k), heads(self.linear_V(value), self.dequant_v)
        if self.bias_k is not None:
            extra = (
                x.repeat(1, batch, 1).view(1, batch * self.num_heads, head).transpose(0, 1)
                for x in (self.bias_k, self.bias_v)
            )
            k, v = (torch.cat([x, more], 1) for x, more in zip((k, v), extra, strict=True))
        if self.add_zero_attn:
            k, v = (torch.cat([x, torch.zeros(x.shape[0], 1, head)], 1) for x in (k, v))
        scores = q @ k.transpose(1, 2)
        added = scores.shape[2] - key.shape[0]
        for mask, padding in ((attn_mask, False), (key_padding_mask, True)):
            if mask is None:
                continue
            mask = F.pad(mask, (0, added)) if added else mask
            if padding:
                mask = mask[:, None, None].expand(-1, self.num_heads, -1, -1).reshape(batch * self.num_heads, 1, -1)
            scores = scores.masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        weights = F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training)
        made = (weights @ v).transpose(0, 1).contiguous().view(steps, batch, self.embed_dim)
        if self.batch_first:
            made = made.transpose(0, 1)
        made = self.out_proj(self.quant_attn_output(made))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return made, None
        weights = weights.view(batch, self.num_heads, steps, -1)
        return made, weights.mean(dim=1) if average_attn_weights else weights


def __dir__() -> list[str]:
    return __all__
