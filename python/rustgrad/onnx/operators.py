"""Sizes as tensors: what programs write so that the sizes of a traced model stay open."""

from __future__ import annotations

from .._C import Tensor, tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor as an int64 vector."""
    return tensor(x.shape)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """`x` with the sizes that the elements of `shape` are."""
    return x.reshape(shape.tolist())


def __dir__() -> list[str]:
    return __all__
