"""`from_dlpack` and `to_dlpack`: memory shared with other libraries."""

from __future__ import annotations

import enum
from typing import Any

from .._C import Tensor, _to_dlpack
from .._functions import from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The kinds of devices that the DLPack protocol knows, by its numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of a CPU tensor's memory, to be consumed once.

    Raises:
        BufferError: the tensor requires grad, or is not on the CPU.
    """
    return _to_dlpack(tensor)
