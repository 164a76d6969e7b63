"""Convolutions with quantised weights, whose inputs are quantised by their own range."""

from __future__ import annotations

import warnings
from typing import Any

import rustgrad as torch

from ...modules import conv as _static

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic:
    """A part of convolutions of float32 inputs."""

    _dims: int
    _transposed: bool
    _packed_params: Any

    def __init__(self, *args: Any, reduce_range: bool = True, **kwargs: Any) -> None:
        warnings.warn(
            f"The current implementation of the {type(self).__name__} module has poor numerical accuracy and its use is not "
            "recommended",
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)

    def _get_name(self):
        return f"DynamicQuantizedConv{'Transpose' if self._transposed else ''}{self._dims}d"

    def forward(self, input: Any, reduce_range: bool = True) -> Any:
        """A float32 tensor."""
        kind = "conv_transpose" if self._transposed else "conv"
        op = getattr(torch.ops.quantized, f"{kind}{self._dims}d_dynamic")
        return op(self._padded(input), self._packed_params, reduce_range)  # type: ignore[attr-defined]


class Conv1d(_Dynamic, _static.Conv1d):
    """A convolution of float32 inputs (N, C, L): see `nn.Conv1d`."""


class Conv2d(_Dynamic, _static.Conv2d):
    """A convolution of float32 inputs (N, C, H, W): see `nn.Conv2d`."""


class Conv3d(_Dynamic, _static.Conv3d):
    """A convolution of float32 inputs (N, C, D, H, W): see `nn.Conv3d`."""


class ConvTranspose1d(_Dynamic, _static.ConvTranspose1d):
    """A transposed convolution of float32 inputs: see `nn.ConvTranspose1d`."""


class ConvTranspose2d(_Dynamic, _static.ConvTranspose2d):
    """A transposed convolution of float32 inputs: see `nn.ConvTranspose2d`."""


class ConvTranspose3d(_Dynamic, _static.ConvTranspose3d):
    """A transposed convolution of float32 inputs: see `nn.ConvTranspose3d`."""


def __dir__() -> list[str]:
    return __all__
