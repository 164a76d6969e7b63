"""The memory format of the weights of convolutions, such as `channels_last`."""

from __future__ import annotations

from typing import TypeVar

from ..._formats import memory_format as _memory_format
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

_M = TypeVar("_M", bound=Module)

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, kinds, memory_format):
    for layer in module.modules():
        if isinstance(layer, kinds):
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: _M, memory_format: _memory_format) -> _M:
    """Lays out the weights of all `Conv2d` and `ConvTranspose2d` in a module by `memory_format`; returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: _M, memory_format: _memory_format) -> _M:
    """Lays out the weights of all `Conv3d` and `ConvTranspose3d` in a module by `memory_format`; returns the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def __dir__() -> list[str]:
    return __all__
