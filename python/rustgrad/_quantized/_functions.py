"""Questions to quantised tensors as functions of the top namespace."""

from __future__ import annotations

from .._C import Tensor

__all__ = [
    "int_repr",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
]


def int_repr(input: Tensor) -> Tensor:
    """A copy of the integers of a quantised tensor. NotImplementedError: it is not quantised."""
    return input.int_repr()


def q_scale(input: Tensor) -> float:
    """The scale of a quantised tensor. RuntimeError: each channel has its own."""
    return input.q_scale()


def q_zero_point(input: Tensor) -> int:
    """The integer that stands for zero. RuntimeError: each channel has its own."""
    return input.q_zero_point()


def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scale of each channel. RuntimeError: there is one for all."""
    return input.q_per_channel_scales()


def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero point of each channel. RuntimeError: there is one for all."""
    return input.q_per_channel_zero_points()


def q_per_channel_axis(input: Tensor) -> int:
    """The dimension of the channels. RuntimeError: there is one scale for all."""
    return input.q_per_channel_axis()
