"""`layout`, `memory_format` and `qscheme` values. A memory format is a request about the strides of dense tensors."""

from __future__ import annotations

from typing import Any

from ._C import Tensor

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "jagged",
    "layout",
    "memory_format",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "preserve_format",
    "qscheme",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
]


class _Constant:
    """A named constant that prints as PyTorch's does, and keeps its identity through copies and pickles."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> Any:
        return self._name


class layout(_Constant):
    """How a tensor holds its elements: `strided`, or one of the sparse layouts; those of blocks are names alone."""

    def __reduce__(self) -> Any:
        return (get_layout, (repr(self),))


def get_layout(name: str) -> layout:
    """The layout of a name such as "torch.sparse_coo": what a pickle calls."""
    found = globals().get(str(name).removeprefix("torch."))
    if not isinstance(found, layout):
        raise RuntimeError(f"expected the name of a layout, got {name!r}")
    return found


class memory_format(_Constant):
    """The strides requested for a new tensor."""


class qscheme(_Constant):
    """How numbers are quantised: with one scale and zero point for a tensor, or with those of each channel."""


per_tensor_affine: qscheme = qscheme("per_tensor_affine")
per_channel_affine: qscheme = qscheme("per_channel_affine")
per_tensor_symmetric: qscheme = qscheme("per_tensor_symmetric")
per_channel_symmetric: qscheme = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams: qscheme = qscheme("per_channel_affine_float_qparams")
strided: layout = layout("strided")
sparse_coo: layout = layout("sparse_coo")
sparse_csr: layout = layout("sparse_csr")
sparse_csc: layout = layout("sparse_csc")
sparse_bsr: layout = layout("sparse_bsr")
sparse_bsc: layout = layout("sparse_bsc")
jagged: layout = layout("jagged")
preserve_format: memory_format = memory_format("preserve_format")
contiguous_format: memory_format = memory_format("contiguous_format")
channels_last: memory_format = memory_format("channels_last")
channels_last_3d: memory_format = memory_format("channels_last_3d")


def format_of(tensor: Tensor) -> memory_format:
    """The memory format of a tensor; `contiguous_format` if it is no channels-last format."""
    formats = (contiguous_format, channels_last, channels_last_3d)
    return next((f for f in formats if tensor.is_contiguous(memory_format=f)), formats[0])


def has_many_orders(tensor: Tensor, ambiguity_check: bool | list[memory_format]) -> bool:
    """Whether the order of a tensor's dimensions in memory is ambiguous: see `Tensor.dim_order`."""
    formats = [] if ambiguity_check is True else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = tensor.stride()
    many = 1 in tensor.shape or len(set(strides)) < len(strides)
    return many and sum(tensor.is_contiguous(memory_format=f) for f in formats) != 1
