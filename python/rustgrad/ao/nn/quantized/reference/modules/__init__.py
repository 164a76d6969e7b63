"""Float layers with dequantised weights."""

from __future__ import annotations

from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .sparse import Embedding, EmbeddingBag

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "EmbeddingBag",
    "Linear",
]


def __dir__() -> list[str]:
    return __all__
