"""The modules of quantised tensors."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from .....nn.modules.module import Module
from .....nn.modules.pooling import MaxPool2d as MaxPool2d  # takes quantised tensors as it is
from .activation import ELU, Hardswish, LeakyReLU, MultiheadAttention, PReLU, ReLU6, Sigmoid, Softmax
from .batchnorm import BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
from .rnn import LSTM

__all__ = [
    "ELU",
    "LSTM",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]


class Quantize(Module):
    """Quantises a float32 tensor.

    Args:
        scale, zero_point: of the results.
        dtype (dtype): of the results.
    """

    scale: Any
    zero_point: Any

    def __init__(self, scale: Any, zero_point: Any, dtype: Any, factory_kwargs: Any = None) -> None:
        options = dict(factory_kwargs or {})
        options.pop("dtype", None)
        super().__init__()
        self.register_buffer("scale", torch.tensor([scale], **options))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.long, **options))
        self.dtype = dtype

    def forward(self, X: Any) -> Any:
        """The quantised tensor."""
        return torch.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """The module of a `QuantStub` that was observed."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError("mod must have activation_post_process attribute")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), zero_point.long().item(), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        """The scale, the zero point and the dtype."""
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """The float32 numbers of a quantised tensor."""

    def forward(self, Xq: Any) -> Any:
        """The float32 tensor."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """The module of a `DeQuantStub`."""
        return DeQuantize()


def __dir__() -> list[str]:
    return __all__
