"""`MultiheadAttention`; `nn.modules.activation` exports it, as in PyTorch."""

from __future__ import annotations

from typing import Any

from ..._base import empty
from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from .. import _attention as attention
from ..init import constant_, xavier_normal_, xavier_uniform_
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    r"""Attention of several heads: :math:`\mathrm{concat}(head_1, .., head_h) W^O` with
    :math:`head_i = \mathrm{attention}(Q W_i^Q, K W_i^K, V W_i^V)`.

    Args:
        embed_dim (int): E, the size of query and output.
        num_heads (int): number of heads, each of size `embed_dim / num_heads`.
        dropout (float): probability with which attention weights are zeroed in training.
        bias (bool): whether the projections have a bias.
        add_bias_kv (bool): whether one learned key and value is added to every sequence.
        add_zero_attn (bool): whether one key and value of zeros is added to every sequence.
        kdim, vdim (int): sizes of key and value, if not `embed_dim`.
        batch_first (bool): whether the tensors are `(N, L, E)` instead of `(L, N, E)`.

    Shape:
        query `(L, N, E)`, key `(S, N, kdim)`, value `(S, N, vdim)`; or without N. Output `(L, N, E)`, weights `(N, L, S)`.

    Raises:
        ValueError: a size is not positive.
        AssertionError: `embed_dim` is not divisible by `num_heads`.

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762.
    """

    __constants__ = ["batch_first"]

    in_proj_weight: Parameter | Any
    in_proj_bias: Parameter | Any
    q_proj_weight: Parameter | Any
    k_proj_weight: Parameter | Any
    v_proj_weight: Parameter | Any
    bias_k: Parameter | Any
    bias_v: Parameter | Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0,"
                f" got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*sizes):
            return Parameter(empty(sizes, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k, self.bias_v = parameter(1, 1, embed_dim), parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of PyTorch 1.1 lack the attribute.
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, attention weights or None).

        Args:
            key_padding_mask: `(N, S)`, bool (true: the key is ignored) or float (added to the scores).
            need_weights (bool): whether the weights are returned; without them attention needs less memory.
            attn_mask: `(L, S)` or `(N * num_heads, L, S)`, likewise.
            average_attn_weights (bool): whether the weights are averaged over the heads, or `(N, num_heads, L, S)`.
            is_causal (bool): a hint that `attn_mask` is the causal mask.
        """
        key_padding_mask = attention._canonical_mask(
            key_padding_mask, "key_padding_mask", attention._none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = attention._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        swap = self.batch_first and query.dim() == 3
        if swap:
            # The same tensors stay the same tensors: their projections are one product.
            same, twin = query is key, key is value
            query = query.transpose(1, 0)
            key = query if same else key.transpose(1, 0)
            value = key if twin else value.transpose(1, 0)
        output, weights = attention.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(1, 0) if swap else output, weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, for a batch `(N, L, E)`: (mask, 0 for none, 1 for padding alone, 2 for `(N, num_heads, L, L)`)."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
            merged = merged + padding
        return merged, 2
