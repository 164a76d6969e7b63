"""The modules of training with quantisation."""

from __future__ import annotations

from .conv import Conv1d, Conv2d, Conv3d
from .embedding_ops import Embedding, EmbeddingBag
from .linear import Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]


def __dir__() -> list[str]:
    return __all__
