"""Quantised layer, group and instance norm."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import nn
from .utils import OutputQParams, _act_qparams

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]


class LayerNorm(OutputQParams, nn.LayerNorm):
    """Layer norm of quantised inputs: see `nn.LayerNorm`.

    Args:
        scale, zero_point: of the results.
    """

    def __init__(
        self, normalized_shape: Any, weight: Any, bias: Any, scale: Any, zero_point: Any, eps: float = 1e-5,
        elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._register_output(scale, zero_point, device)

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedLayerNorm"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return cls.from_reference(mod, *_act_qparams(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module with the parameters of a float one."""
        return cls(
            mod.normalized_shape, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.elementwise_affine
        )


class GroupNorm(OutputQParams, nn.GroupNorm):
    """Group norm of quantised inputs: see `nn.GroupNorm`.

    Args:
        scale, zero_point: of the results.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: Any, zero_point: Any, eps: float = 1e-5,
        affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._register_output(scale, zero_point, device)

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.group_norm(
            input, self.num_groups, self.weight, self.bias, self.eps, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedGroupNorm"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *_act_qparams(mod), mod.eps, mod.affine)


class _InstanceNorm(OutputQParams):
    def __init__(
        self, num_features: int, weight: Any, bias: Any, scale: Any, zero_point: Any, eps: float = 1e-5, momentum: float = 0.1,
        affine: bool = False, track_running_stats: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._register_output(scale, zero_point, device)

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.instance_norm(input, self.weight, self.bias, self.eps, self.scale, self.zero_point)

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return cls.from_reference(mod, *_act_qparams(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module with the parameters of a float one."""
        return cls(mod.num_features, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, affine=mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Instance norm of quantised inputs (N, C, L): see `nn.InstanceNorm1d`."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Instance norm of quantised inputs (N, C, H, W): see `nn.InstanceNorm2d`."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Instance norm of quantised inputs (N, C, D, H, W): see `nn.InstanceNorm3d`."""


def __dir__() -> list[str]:
    return __all__
