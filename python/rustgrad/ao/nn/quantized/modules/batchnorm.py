"""Quantised batch norm, with running statistics."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import nn
from ... import intrinsic as nni
from .utils import OutputQParams, _act_qparams

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(OutputQParams, nn.modules.batchnorm._BatchNorm):
    """Batch norm of quantised inputs: see `nn.BatchNorm2d`.

    Attributes:
        scale, zero_point: of the results.
    """

    _dims = 0
    _op = ""
    _NNI_BN_RELU_MODULE: Any = None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self._register_output(1.0, 0, device)

    def _get_name(self):
        return f"QuantizedBatchNorm{self._dims - 2}d"

    def _check_input_dim(self, input):
        if len(input.shape) != self._dims:
            shape = "N, C, H, W" if self._dims == 4 else "N, C, H, W, D"
            raise ValueError(f"Input shape must be `({shape})`!")

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        self._check_input_dim(input)
        return getattr(torch.ops.quantized, self._op)(
            input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, self.scale, self.zero_point
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        scale, zero_point = _act_qparams(mod)
        return cls.from_reference(mod[0] if isinstance(mod, nni._FusedModule) else mod, scale, zero_point)

    @classmethod
    def from_reference(cls, bn: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised module with parameters and statistics of a float one."""
        made = cls(bn.num_features, bn.eps, device=bn.weight.device, dtype=bn.weight.dtype)
        made.weight, made.bias = bn.weight, bn.bias
        made.running_mean, made.running_var = bn.running_mean, bn.running_var
        made.scale, made.zero_point = torch.tensor(float(output_scale)), torch.tensor(int(output_zero_point))
        return made


class BatchNorm2d(_BatchNorm):
    """Batch norm of quantised inputs (N, C, H, W)."""

    _dims, _op = 4, "batch_norm2d"
    _NNI_BN_RELU_MODULE = nni.BNReLU2d


class BatchNorm3d(_BatchNorm):
    """Batch norm of quantised inputs (N, C, D, H, W)."""

    _dims, _op = 5, "batch_norm3d"
    _NNI_BN_RELU_MODULE = nni.BNReLU3d


def __dir__() -> list[str]:
    return __all__
