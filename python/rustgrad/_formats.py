"""`layout` and `memory_format` values. Tensors here are strided; a memory format is a request about strides."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]


class _Constant:
    """A named constant that prints as PyTorch's does, and stays itself through copies and pickles."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> Any:
        return self._name


class layout(_Constant):
    """How a tensor's elements lie in memory: `strided`."""


class memory_format(_Constant):
    """What strides a new tensor is to have."""


strided: layout = layout("strided")
preserve_format: memory_format = memory_format("preserve_format")
contiguous_format: memory_format = memory_format("contiguous_format")
channels_last: memory_format = memory_format("channels_last")
channels_last_3d: memory_format = memory_format("channels_last_3d")
