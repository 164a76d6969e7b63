"""`from_dlpack` and `to_dlpack`: memory shared with other libraries."""

from __future__ import annotations

from typing import Any

from .._C import Tensor, _to_dlpack
from .._functions import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of a CPU tensor's memory, to be consumed once.

    Raises:
        BufferError: the tensor requires grad, or is not on the CPU.
    """
    return _to_dlpack(tensor)
