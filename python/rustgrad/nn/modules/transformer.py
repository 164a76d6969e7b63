"""The Transformer: layers of attention and feed-forward networks, stacks of layers, encoder and decoder.

Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762; normalisation before each block as in Xiong et
al., "On Layer Normalization in the Transformer Architecture", arXiv:2002.04745.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..._base import full, triu
from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from .. import _attention as attention
from .. import functional as F
from ..init import xavier_uniform_
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    """`(sz, sz)`: -inf above the diagonal, else 0."""
    return triu(full((sz, sz), -math.inf, dtype=dtype, device=device), diagonal=1)


def _detect_is_causal_mask(mask, is_causal, length):
    """Whether the mask is the causal one, if `is_causal` does not say so."""
    if is_causal is not None or mask is None:
        return is_causal is True
    causal = _generate_square_subsequent_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _get_seq_len(x, batch_first):
    return x.size(1) if batch_first and x.dim() == 3 else x.size(0)


def _get_activation_fn(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in _ACTIVATIONS:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return _ACTIVATIONS[activation]


def _get_clones(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class _Layer(Module):
    """What the layers of encoder and decoder share: self-attention and the feed-forward network."""

    __constants__ = ["norm_first"]

    def _build(self, d_model, nhead, dim_feedforward, dropout, eps, norm_first, bias, batch_first, cross, factory):
        def attend():
            return MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory)

        self.self_attn = attend()
        if cross:
            self.multihead_attn = attend()
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        blocks = range(1, 4 if cross else 3)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=eps, bias=bias, **factory))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _attend(module, x, memory, attn_mask, key_padding_mask, is_causal):
    return module(
        x,
        memory,
        memory,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        is_causal=is_causal,
        need_weights=False,
    )[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual connection and normalisation.

    Args:
        d_model (int): E, the number of features.
        nhead (int): number of heads.
        dim_feedforward (int): size of the hidden layer of the feed-forward network.
        dropout (float): probability of dropout.
        activation (str or callable): "relu", "gelu" or a function of a tensor.
        layer_norm_eps (float): eps of the normalisations.
        batch_first (bool): whether the tensors are `(N, S, E)` instead of `(S, N, E)`.
        norm_first (bool): whether normalisation comes before each block instead of after it.
        bias (bool): whether linear maps and normalisations have a bias.

    Shape:
        src and output `(S, N, E)`, or `(S, E)`.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self._build(
            d_model, nhead, dim_feedforward, dropout, layer_norm_eps, norm_first, bias, batch_first, False, factory
        )
        activation = _get_activation_fn(activation)
        relu, gelu = (activation is f or isinstance(activation, cls) for f, cls in ((F.relu, ReLU), (F.gelu, GELU)))
        self.activation_relu_or_gelu = 1 if relu else 2 if gelu else 0
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer's output, of the shape of `src`; masks as in `MultiheadAttention.forward`."""
        padding = attention._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", attention._none_or_dtype(src_mask), "src_mask", src.dtype
        )
        mask = attention._canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x):
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward network, each with a residual connection.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            `TransformerEncoderLayer`.

    Shape:
        tgt and output `(T, N, E)`, memory `(S, N, E)`; or without N.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self._build(
            d_model, nhead, dim_feedforward, dropout, layer_norm_eps, norm_first, bias, batch_first, True, factory
        )
        self.activation = _get_activation_fn(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The layer's output, of the shape of `tgt`; masks as in `MultiheadAttention.forward`."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x):
        return self.dropout3(self._feed_forward(x))


class TransformerEncoder(Module):
    """A stack of `num_layers` copies of `encoder_layer`, with a normalisation at the end if `norm` is given.

    `enable_nested_tensor` and `mask_check` choose a faster path in PyTorch; here they are accepted and have no effect.
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """The last layer's output; where `is_causal` is None, `mask` is compared with the causal mask."""
        padding = attention._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", attention._none_or_dtype(mask), "mask", src.dtype
        )
        mask = attention._canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        length = _get_seq_len(src, self.layers[0].self_attn.batch_first)
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of `num_layers` copies of `decoder_layer`, with a normalisation at the end if `norm` is given."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The last layer's output; where `tgt_is_causal` is None, `tgt_mask` is compared with the causal mask."""
        length = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder of the source and a decoder of the target that attends to the encoder's output.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            `TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers (int): number of layers.
        custom_encoder, custom_decoder (Module): in place of the stacks built from these arguments.

    Shape:
        src `(S, N, E)`, tgt and output `(T, N, E)`; `(N, S, E)` and `(N, T, E)` if `batch_first`; or without N.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*shared, **factory)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*shared, **factory)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's output; masks as in `MultiheadAttention.forward`.

        Raises:
            RuntimeError: src and tgt have different batch sizes, or not `d_model` features.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike | None = None, dtype: dtype | None = None
    ) -> Tensor:
        """The causal mask `(sz, sz)`: -inf above the diagonal, else 0."""
        return _generate_square_subsequent_mask(sz, device=device, dtype=dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)
