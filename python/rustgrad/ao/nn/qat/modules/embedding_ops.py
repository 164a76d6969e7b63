"""Embeddings whose weights are rounded as quantised ones would be, for training."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import nn
from .....nn import functional as F
from .linear import checked

__all__ = ["Embedding", "EmbeddingBag"]


def _check_qconfig(qconfig):
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    if qconfig.weight().qscheme != torch.per_channel_affine_float_qparams:
        raise AssertionError(
            f"Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams Got {qconfig.weight().qscheme}"
        )


class Embedding(nn.Embedding):
    """`nn.Embedding` with a weight that is rounded.

    Args:
        qconfig (QConfig): its `weight` makes the module that rounds.
    """

    _FLOAT_MODULE = nn.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, device: Any = None, dtype: Any = None,
        qconfig: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, device=device,
            dtype=dtype,
        )  # fmt: skip
        _check_qconfig(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    def forward(self, input: Any) -> Any:
        """The rows of the rounded weight."""
        return F.embedding(
            input, self.weight_fake_quant(self.weight), self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.sparse,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The module of a float one with a configuration."""
        mod, qconfig = checked(cls, mod, cls.__name__, (cls._FLOAT_MODULE,))
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq,
            mod.sparse, mod.weight, qconfig=qconfig,
        )  # fmt: skip

    def to_float(self) -> Any:
        """The float module with this weight."""
        made = nn.Embedding(
            self.num_embeddings, self.embedding_dim, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.sparse, self.weight.detach(),
        )  # fmt: skip
        return made.train(self.training)


class EmbeddingBag(nn.EmbeddingBag):
    """`nn.EmbeddingBag` with a weight that is rounded.

    Args:
        qconfig (QConfig): its `weight` makes the module that rounds.
    """

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: Any = None, qconfig: Any = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight, include_last_offset,
            padding_idx, device=device, dtype=dtype,
        )  # fmt: skip
        _check_qconfig(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """The sums of the rows of the rounded weight."""
        return F.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The module of a float one with a configuration."""
        mod, qconfig = checked(cls, mod, cls.__name__, (cls._FLOAT_MODULE,))
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse,
            mod.weight, mod.include_last_offset, mod.padding_idx, qconfig=qconfig,
        )  # fmt: skip

    def to_float(self) -> Any:
        """The float module with this weight."""
        made = nn.EmbeddingBag(
            self.num_embeddings, self.embedding_dim, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            self.sparse, self.weight.detach(), self.include_last_offset, self.padding_idx,
        )  # fmt: skip
        return made.train(self.training)


def __dir__() -> list[str]:
    return __all__
