"""Quantised batch norm with relu."""

from __future__ import annotations

from .... import intrinsic as nni
from ....quantized.modules import batchnorm as nnq

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(nnq.BatchNorm2d):
    """Batch norm of quantised inputs (N, C, H, W) with relu."""

    _FLOAT_MODULE = nni.BNReLU2d
    _op = "batch_norm2d_relu"

    def _get_name(self):
        return "QuantizedBNReLU2d"


class BNReLU3d(nnq.BatchNorm3d):
    """Batch norm of quantised inputs (N, C, D, H, W) with relu."""

    _FLOAT_MODULE = nni.BNReLU3d
    _op = "batch_norm3d_relu"

    def _get_name(self):
        return "QuantizedBNReLU3d"


def __dir__() -> list[str]:
    return __all__
