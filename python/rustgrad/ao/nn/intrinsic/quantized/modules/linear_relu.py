"""Quantised linear layers with an activation."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from .... import intrinsic as nni
from ....quantized.modules import linear as nnq

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class LinearReLU(nnq.Linear):
    """A quantised linear layer with relu: see `nn.Linear`."""

    _FLOAT_MODULE = nni.LinearReLU

    def forward(self, x: Any) -> Any:
        """A quantised tensor of shape (..., outputs)."""
        return torch.ops.quantized.linear_relu(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLinearReLU"


class LinearLeakyReLU(nnq.Linear):
    """A quantised linear layer with leaky relu: see `nn.Linear` and `nn.LeakyReLU`."""

    _FLOAT_MODULE = nni.LinearLeakyReLU

    def __init__(
        self, in_features: int, out_features: int, negative_slope: float, bias: bool = True, dtype: Any = torch.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        """A quantised tensor of shape (..., outputs)."""
        return torch.ops.quantized.linear_leaky_relu(
            x, self._packed_params._packed_params, self.scale, self.zero_point, self.negative_slope
        )

    def _get_name(self):
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def _sized(cls, observed, linear):
        return cls(linear.in_features, linear.out_features, observed[1].negative_slope)


class LinearTanh(nnq.Linear):
    """A quantised linear layer with tanh: see `nn.Linear`."""

    _FLOAT_MODULE = nni.LinearTanh

    def forward(self, x: Any) -> Any:
        """A quantised tensor of shape (..., outputs)."""
        return torch.ops.quantized.linear_tanh(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLinearTanh"


def __dir__() -> list[str]:
    return __all__
