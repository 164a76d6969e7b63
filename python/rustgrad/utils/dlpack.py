"""`from_dlpack` and `to_dlpack`: memory shared with other libraries."""

from .._C import _to_dlpack
from .._functions import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """A DLPack capsule of a CPU tensor's memory, which a consumer uses up.

    Raises:
        BufferError: the tensor requires grad, or is not on the CPU.
    """
    return _to_dlpack(tensor)
