"""Convolutions whose weights are rounded as quantised ones would be, for training."""

from __future__ import annotations

from typing import Any

from ..... import nn
from ... import intrinsic as nni
from .linear import checked, take_parameters

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


def geometry(mod):
    """The arguments of a convolution like another one."""
    return {
        "in_channels": mod.in_channels, "out_channels": mod.out_channels, "kernel_size": mod.kernel_size, "stride": mod.stride,
        "padding": mod.padding, "dilation": mod.dilation, "groups": mod.groups, "bias": mod.bias is not None,
        "padding_mode": mod.padding_mode,
    }  # fmt: skip


class _Rounding:
    """A part of convolutions with a weight that is rounded.

    Raises:
        AssertionError: no configuration.
    """

    _FLOAT_MODULE: Any = None
    _FUSED: Any = ()

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    def forward(self, input: Any) -> Any:
        """The convolution with the rounded weight."""
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)  # type: ignore[attr-defined]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The module of a float one with a configuration."""
        mod, qconfig = checked(cls, mod, cls.__name__, (cls._FLOAT_MODULE, *cls._FUSED))
        return take_parameters(cls(**geometry(mod), qconfig=qconfig), mod)

    def to_float(self) -> Any:
        """The float module with these parameters."""
        made = take_parameters(self._FLOAT_MODULE(**geometry(self)), self)
        return made.train(self.training)  # type: ignore[attr-defined]


class Conv1d(_Rounding, nn.Conv1d):
    """`nn.Conv1d` with a weight that is rounded."""

    _FLOAT_MODULE, _FUSED = nn.Conv1d, (nni.ConvReLU1d,)


class Conv2d(_Rounding, nn.Conv2d):
    """`nn.Conv2d` with a weight that is rounded."""

    _FLOAT_MODULE, _FUSED = nn.Conv2d, (nni.ConvReLU2d,)


class Conv3d(_Rounding, nn.Conv3d):
    """`nn.Conv3d` with a weight that is rounded."""

    _FLOAT_MODULE, _FUSED = nn.Conv3d, (nni.ConvReLU3d,)


def __dir__() -> list[str]:
    return __all__
