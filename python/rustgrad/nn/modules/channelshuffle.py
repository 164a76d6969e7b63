"""`ChannelShuffle`: mixes the channels of groups."""

from __future__ import annotations

from ..._C import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Reorders channels: the first of each of `groups` groups, then the second of each, and so on.

    Shape: `(N, C, *)` to the same; C is divisible by `groups`.

    Source: Zhang et al., "ShuffleNet", arXiv:1707.01083.
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
