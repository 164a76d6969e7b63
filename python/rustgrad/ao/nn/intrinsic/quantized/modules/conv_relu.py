"""Quantised convolutions with relu."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from .... import intrinsic as nni
from ....quantized.modules import conv as nnq

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ConvReLU:
    _dims: int
    _packed_params: Any

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        op = getattr(torch.ops.quantized, f"conv{self._dims}d_relu")
        return op(self._padded(input), self._packed_params, self.scale, self.zero_point)  # type: ignore[attr-defined]

    def _get_name(self):
        return f"QuantizedConvReLU{self._dims}d"


class ConvReLU1d(_ConvReLU, nnq.Conv1d):
    """A quantised convolution over one dimension with relu: see `nn.Conv1d`."""

    _FLOAT_MODULE = nni.ConvReLU1d


class ConvReLU2d(_ConvReLU, nnq.Conv2d):
    """A quantised convolution over two dimensions with relu: see `nn.Conv2d`."""

    _FLOAT_MODULE = nni.ConvReLU2d


class ConvReLU3d(_ConvReLU, nnq.Conv3d):
    """A quantised convolution over three dimensions with relu: see `nn.Conv3d`."""

    _FLOAT_MODULE = nni.ConvReLU3d


def __dir__() -> list[str]:
    return __all__
