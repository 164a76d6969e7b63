"""`ops.quantized`: embeddings whose rows are integers, each with a scale and a zero point of its own.

A looked-up row is `scale * integer + bias` with `bias = -zero_point * scale`, both in float32, as PyTorch keeps it.
"""

from __future__ import annotations

import functools
from typing import Any

from .. import _C
from .._C import Tensor, ops
from ..nn import functional
from ._quantizer import PerChannel
from ._script_object import CLASSES, ScriptObject
from ._tensor import is_quantized

OPS: dict[str, Any] = {}


class EmbeddingPackedParams:
    """A weight (rows, features) of `quint8` or `quint4x2` with a scale and a float zero point for each row."""

    qualified = "quantized.EmbeddingPackedParamsBase"

    def __init__(self, weight: Tensor) -> None:
        if (
            not is_quantized(weight)
            or weight.dtype not in (_C.quint8, _C.quint4x2)
            or not isinstance(weight._quantizer, PerChannel)
        ):
            raise RuntimeError(
                "embedding_bag_prepack: expected a weight of quint8 or quint4x2 with a scale for each row"
            )
        if weight.dim() != 2 or weight._quantizer.axis != 0:
            raise RuntimeError(
                f"embedding_bag_prepack: expected a matrix with scales along dimension 0, got {tuple(weight.shape)}"
            )
        self._weight = weight
        quantizer = weight._quantizer
        self._scales = quantizer.scales.float()
        self._biases = quantizer.zero_points.float() * self._scales * -1

    def unpack(self) -> Tensor:
        """The weight."""
        return self._weight

    def parts(self) -> Any:
        """The state of a pickle: a version, tensors, and the number of bits."""
        return 1, [self._weight], [], [8 if self._weight.dtype is _C.quint8 else 4]

    def rows(self, indices: Tensor) -> Tensor:
        """The numbers of rows: shape (..., features)."""
        flat = indices.reshape(-1)
        integers = self._weight._value.index_select(0, flat).double()
        scales, biases = (t.index_select(0, flat)[:, None] for t in (self._scales, self._biases))
        return (integers * scales + biases).float().reshape(*indices.shape, self._weight.shape[1])


CLASSES[EmbeddingPackedParams.qualified] = lambda parts: EmbeddingPackedParams(parts[1][0])


def op(function):
    """Puts a function among the ops of the namespace, under its own name."""
    OPS[function.__name__] = function
    return function


def _renamed(function):
    """The same function under a name of its own: the weight says how many bits its integers have."""
    return functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs))


@op
def embedding_bag_prepack(weight):
    """A weight of `quint8` with a scale and a float zero point for each row, for `embedding_byte` and `embedding_bag_byte`."""
    return ScriptObject(EmbeddingPackedParams(weight))


@op
def embedding_bag_unpack(W_prepack):
    """The weight."""
    return W_prepack.unpack()


@op
def embedding_byte(weight, indices, pruned_weights=False):
    """The rows at indices, in float32."""
    return weight.rows(indices)


@op
def embedding_bag_byte(
    weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
    compressed_indices_mapping=None, include_last_offset=False,
):  # fmt: skip
    """The sums of the rows of each bag, in float32: see `nn.functional.embedding_bag`."""
    indices, kept = _kept(indices, pruned_weights, compressed_indices_mapping)
    rows = weight.rows(indices)
    rows = rows if kept is None else rows * kept
    return _bags(rows, indices, offsets, per_sample_weights, include_last_offset)


def _kept(indices, pruned, mapping):
    """The places of rows in a weight of which some were left out, and whether each is there."""
    if not pruned or mapping is None or mapping.numel() < 2:
        return indices, None
    places = mapping.index_select(0, indices.reshape(-1)).reshape(indices.shape)
    return places.clamp(min=0), (places >= 0).float().unsqueeze(-1)


OPS["embedding_4bit"], OPS["embedding_bag_4bit"] = _renamed(embedding_byte), _renamed(embedding_bag_byte)


def _bags(rows, indices, offsets, per_sample_weights, include_last_offset):
    if indices.dim() == 2:
        if offsets is not None:
            raise RuntimeError("embedding_bag: if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences")  # fmt: skip
        indices = indices.reshape(-1)
        offsets = ops["arange"](0, indices.numel(), rows.shape[1])
        rows, include_last_offset = rows.reshape(-1, rows.shape[-1]), False
    elif offsets is None:
        raise RuntimeError("embedding_bag_byte expects offsets to be set for 1D indices.")
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1).float()
    places = ops["arange"](rows.shape[0])
    return functional.embedding_bag(
        places, rows, offsets.long(), mode="sum", per_sample_weights=weights, include_last_offset=include_last_offset
    )


def _row_wise(weight):
    """Scale and bias of each row of a float32 weight, by its least and greatest."""
    low, high = ops["aminmax"](weight, dim=-1, keepdim=True)
    return (high - low) / 255.0, low


@op
def embedding_bag_byte_prepack(weight):
    """Rows of float32 numbers as bytes: the integers, then scale and bias as float32."""
    weight = weight.detach().float()
    scale, bias = _row_wise(weight)
    inverse = 255.0 / ((scale * 255.0) + 1e-8)
    integers = ((weight - bias) * inverse).round().clamp(0, 255).to(_C.uint8)
    return ops["cat"]([integers, scale.contiguous().view(_C.uint8), bias.contiguous().view(_C.uint8)], -1)


@op
def embedding_bag_byte_unpack(weight):
    """The float32 numbers of `embedding_bag_byte_prepack`."""
    integers = weight[..., :-8].float()
    scale, bias = (weight[..., at].contiguous().view(_C.float32) for at in (slice(-8, -4), slice(-4, None)))
    return integers * scale + bias


@op
def embedding_bag_byte_rowwise_offsets(
    weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
    compressed_indices_mapping=None, include_last_offset=False,
):  # fmt: skip
    """`embedding_bag_byte` of rows of `embedding_bag_byte_prepack`."""
    indices, kept = _kept(indices, pruned_weights, compressed_indices_mapping)
    rows = embedding_bag_byte_unpack(weight.index_select(0, indices.reshape(-1)))
    rows = rows.reshape(*indices.shape, rows.shape[-1])
    rows = rows if kept is None else rows * kept
    return _bags(rows, indices, offsets, per_sample_weights, include_last_offset)
