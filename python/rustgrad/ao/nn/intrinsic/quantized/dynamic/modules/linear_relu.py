"""A linear layer with relu of dynamic quantisation."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import intrinsic as nni
from .....quantized.dynamic.modules import linear as nnqd

__all__ = ["LinearReLU"]


class LinearReLU(nnqd.Linear):
    """A linear layer of float32 inputs with relu: see `nn.quantized.dynamic.Linear`."""

    _FLOAT_MODULE = nni.LinearReLU

    def forward(self, x: Any) -> Any:
        """A float32 tensor of shape (..., outputs)."""
        ops, packed = torch.ops.quantized, self._packed_params._packed_params
        if self._packed_params.dtype == torch.qint8:
            made = ops.linear_relu_dynamic(x, packed, reduce_range=True)
        else:
            made = ops.linear_relu_dynamic_fp16(x, packed)
        return made.to(x.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu: Any) -> Any:
        """The layer of one that computes with dequantised weights."""
        return super().from_reference(ref_qlinear_relu[0])


def __dir__() -> list[str]:
    return __all__
