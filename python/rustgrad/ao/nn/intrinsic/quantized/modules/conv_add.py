"""Quantised convolutions to which another tensor is added."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from .... import intrinsic as nni
from ....quantized.modules import conv as nnq

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(nnq.Conv2d):
    """A quantised convolution to which a quantised tensor is added before rounding."""

    _FLOAT_MODULE = nni.ConvAdd2d
    _op = "conv2d_add"

    def forward(self, input: Any, extra_input: Any) -> Any:  # type: ignore[override]
        """A quantised tensor."""
        op = getattr(torch.ops.quantized, self._op)
        return op(self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self):
        return f"Quantized{type(self).__name__}"


class ConvAddReLU2d(ConvAdd2d):
    """`ConvAdd2d` with relu."""

    _FLOAT_MODULE = nni.ConvAddReLU2d
    _op = "conv2d_add_relu"


def __dir__() -> list[str]:
    return __all__
