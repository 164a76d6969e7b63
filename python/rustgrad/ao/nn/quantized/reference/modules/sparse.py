"""Embeddings with dequantised weights."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......nn import functional as F
from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(nn.Embedding, ReferenceQuantizedModule):
    """`nn.Embedding` whose weight is quantised and dequantised."""

    def __init__(self, *args: Any, weight_qparams: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._init_weight_qparams(weight_qparams, kwargs.get("device"))

    def _get_name(self):
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Any) -> Any:
        """The rows at indices."""
        return F.embedding(
            input,
            self.get_weight(),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: Any) -> Any:
        """The module of a float one."""
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq,
            mod.sparse, mod.weight.detach(), weight_qparams=weight_qparams,
        )  # fmt: skip


class EmbeddingBag(nn.EmbeddingBag, ReferenceQuantizedModule):
    """`nn.EmbeddingBag` whose weight is quantised and dequantised."""

    def __init__(self, *args: Any, weight_qparams: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._init_weight_qparams(weight_qparams, kwargs.get("device"))

    def _get_name(self):
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """The sums of the rows of each bag."""
        return F.embedding_bag(
            input, self.get_weight(), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The module of a float one."""
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse,
            mod.weight.detach(), mod.include_last_offset, mod.padding_idx, weight_qparams=weight_qparams,
        )  # fmt: skip


def __dir__() -> list[str]:
    return __all__
