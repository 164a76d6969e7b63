"""`ReduceOp`: how collectives combine the tensors of processes, as ops on two tensors."""

from __future__ import annotations

import enum
from collections.abc import Callable

from .._base import bitwise_and, bitwise_or, bitwise_xor, maximum, minimum, zeros
from .._C import Tensor

__all__ = ["ReduceOp", "combiner"]


class ReduceOp(enum.Enum):
    """How `all_reduce` and its kin combine the tensors of the processes."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


# In PyTorch the members are of this class.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

_COMBINE: dict[ReduceOp, Callable[[Tensor, Tensor], object]] = {
    ReduceOp.SUM: lambda into, other: into.add_(other),
    ReduceOp.AVG: lambda into, other: into.add_(other),
    ReduceOp.PRODUCT: lambda into, other: into.mul_(other),
    ReduceOp.MIN: lambda into, other: minimum(into, other, out=into),
    ReduceOp.MAX: lambda into, other: maximum(into, other, out=into),
    ReduceOp.BAND: lambda into, other: bitwise_and(into, other, out=into),
    ReduceOp.BOR: lambda into, other: bitwise_or(into, other, out=into),
    ReduceOp.BXOR: lambda into, other: bitwise_xor(into, other, out=into),
}
_proven: set[tuple[object, ReduceOp]] = set()


def combiner(op: ReduceOp, tensor: Tensor, name: str) -> Callable[[Tensor, Tensor], object]:
    """What combines a second tensor with a first one, in place.

    Raises:
        TypeError: no ReduceOp. ValueError: an op that complex numbers do not have.
        RuntimeError: an op that the element type does not have, or that is not supported.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: expected a ReduceOp, got {type(op).__name__}")
    if op is ReduceOp.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if tensor.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"{name} does not support RedOpType.{op.name} on complex tensors")
    if tensor.is_floating_point() and op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"result type Float can't be cast to the desired output type of {tensor.dtype}")
    combine = _COMBINE[op]
    if (tensor.dtype, op) not in _proven:
        # Before any byte is sent: a type without the op must not leave other processes waiting.
        combine(zeros(1, dtype=tensor.dtype), zeros(1, dtype=tensor.dtype))
        _proven.add((tensor.dtype, op))
    return combine
