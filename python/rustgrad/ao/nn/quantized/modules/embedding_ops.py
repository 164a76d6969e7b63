"""Embeddings with quantised rows."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import nn
from .utils import _quantize_weight

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]

_DTYPES = (torch.quint8, torch.quint4x2)


class EmbeddingPackedParams(nn.Module):
    """The weight of an embedding, as its look-up takes it."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = torch.quint8) -> None:
        super().__init__()
        self.dtype = dtype
        if dtype not in _DTYPES:
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2, got {dtype}."
            )
        weight = torch._empty_per_channel_affine_quantized(
            [num_embeddings, embedding_dim], scales=torch.ones(num_embeddings), zero_points=torch.zeros(num_embeddings), axis=0,
            dtype=dtype,
        )  # fmt: skip
        self.set_weight(weight.fill_(0))

    def set_weight(self, weight: Any) -> None:
        """Takes a quantised weight."""
        self._packed_weight = torch.ops.quantized.embedding_bag_prepack(weight)

    def _weight(self):
        return torch.ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """Rows of a quantised weight, in float32: see `nn.Embedding`."""

    _version = 1
    _ALLOWED: tuple[str, ...] = ("Embedding",)

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, dtype: Any = torch.quint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is None:
            floats = torch.zeros(num_embeddings, embedding_dim)
            _weight = torch.quantize_per_channel(
                floats, torch.ones(num_embeddings), torch.zeros(num_embeddings), 0, dtype
            )
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        self._packed_params.set_weight(_weight)

    def forward(self, indices: Any) -> Any:
        """The rows at indices."""
        return torch.ops.quantized.embedding_byte(self._packed_params._packed_weight, indices)

    def _get_name(self):
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The sizes, the dtype and the scheme of the weight."""
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Any) -> None:
        """Takes a quantised weight."""
        self._packed_params.set_weight(w)

    def weight(self) -> Any:
        """The quantised weight."""
        return self._packed_params._weight()

    @classmethod
    def _quantised(cls, mod):
        """The weight of a float module by the observer of its configuration."""
        if hasattr(mod, "weight_fake_quant"):
            observer = mod.weight_fake_quant
        else:
            if type(mod).__name__ not in cls._ALLOWED:
                raise AssertionError(f"nnq.{cls.__name__}.from_float only works for nn.{cls.__name__}, got {type(mod)}")
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Embedding input float module must have qconfig defined")
            from .....ao.quantization.qconfig import float_qparams_weight_only_qconfig

            given = mod.qconfig is not None and mod.qconfig.weight is not None
            observer = (mod.qconfig if given else float_qparams_weight_only_qconfig).weight()
        if observer.dtype not in _DTYPES:
            raise AssertionError(
                f"The only supported dtype for nnq.{cls.__name__} is torch.quint8 and torch.quint4x2, got {observer.dtype}"
            )
        if getattr(observer, "qscheme", None) != torch.per_channel_affine_float_qparams:
            raise AssertionError("Embedding quantization is only supported with float_qparams_weight_only_qconfig.")
        observer(mod.weight)
        return _quantize_weight(mod.weight.detach().float(), observer)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one."""
        weight = cls._quantised(mod)
        made = cls(mod.num_embeddings, mod.embedding_dim, dtype=weight.dtype)
        made.set_weight(weight)
        return made

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """The quantised module of one that computes with dequantised weights."""
        made = cls(ref_embedding.num_embeddings, ref_embedding.embedding_dim)
        made.set_weight(ref_embedding.get_quantized_weight())
        return made


class EmbeddingBag(Embedding):
    """Sums of rows of a quantised weight, in float32: see `nn.EmbeddingBag`."""

    _ALLOWED = ("EmbeddingBag",)

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "sum", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, dtype: Any = torch.quint8,
    ) -> None:  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights, self.include_last_offset = mode, False, include_last_offset

    def forward(
        self, indices: Any, offsets: Any = None, per_sample_weights: Any = None, compressed_indices_mapping: Any = None
    ) -> Any:
        """The sums of the rows of each bag."""
        return torch.ops.quantized.embedding_bag_byte(
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights, per_sample_weights,
            compressed_indices_mapping, self.include_last_offset,
        )  # fmt: skip

    def _get_name(self):
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one."""
        weight = cls._quantised(mod)
        made = cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse,
            include_last_offset=mod.include_last_offset, dtype=weight.dtype,
        )  # fmt: skip
        made.set_weight(weight)
        return made

    @classmethod
    def from_reference(cls, ref_embedding_bag: Any) -> Any:
        """The quantised module of one that computes with dequantised weights."""
        made = cls(
            ref_embedding_bag.num_embeddings, ref_embedding_bag.embedding_dim, mode=ref_embedding_bag.mode,
            include_last_offset=ref_embedding_bag.include_last_offset,
        )  # fmt: skip
        made.set_weight(ref_embedding_bag.get_quantized_weight())
        return made


def __dir__() -> list[str]:
    return __all__
