"""What is known of a node's value: a meta tensor with the sizes of the example, and its sizes as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._base import Tensor
from ..fx.node import Node
from ._expr import Expr

__all__ = ["SymValue", "ValueRanges", "described", "keep_name", "sizes_of", "strides_of", "tensor_value"]

SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128", "uint16": "u16", "uint32": "u32",
    "uint64": "u64",
}  # fmt: skip


class SymValue(int):
    """A size as the value of a node: the number in the example, and the expression."""

    expr: Expr | int

    def __new__(cls, value: int, expr: Expr | int) -> SymValue:
        new = int.__new__(cls, value)
        new.expr = expr
        return new

    def __repr__(self) -> str:
        return repr(self.expr)

    def __deepcopy__(self, memo: dict[int, Any]) -> SymValue:
        return self


class ValueRanges:
    """The bounds of a symbol: `upper` is None without one."""

    def __init__(self, lower: int | None, upper: int | None) -> None:
        self.lower, self.upper = lower, upper

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueRanges) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        low = "-int_oo" if self.lower is None else self.lower
        return f"VR[{low}, {'int_oo' if self.upper is None else self.upper}]"


def keep_name(node: Node, name: str) -> None:
    """Gives a node a name that may be one of Python's, such as `input`."""
    node.graph._namespace.rename(node, name)
    node.name = name


def tensor_value(
    sizes: Sequence[Expr | int],
    shape: Sequence[int],
    stride: Sequence[int],
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """A meta tensor that stands for a value."""
    made = _C.ops["empty_strided"](tuple(shape), tuple(stride), dtype=dtype, device="meta")
    if requires_grad and (dtype.is_floating_point or dtype.is_complex):
        made.requires_grad_()
    made._sizes, made._device = tuple(sizes), device
    return made


def sizes_of(value: Tensor) -> tuple[Expr | int, ...]:
    """The sizes of a value as expressions."""
    return getattr(value, "_sizes", None) or tuple(value.shape)


def strides_of(value: Tensor) -> list[Expr | int]:
    """The strides of a value: products of sizes where it is dense in some order of its dimensions."""
    sizes, strides = sizes_of(value), value.stride()
    found: list[Expr | int] = list(strides)
    total, number = Expr({(): 1}), 1
    for d in sorted(range(value.dim()), key=lambda d: (strides[d], -d)):
        if strides[d] != number and value.shape[d] != 1:
            return found
        found[d] = total.constant if total.constant is not None else total
        total, number = total * sizes[d], number * max(value.shape[d], 1)
    return found


def described(value: Any) -> str | None:
    """`f32[s77, 4]`, `Sym(s77 + 1)`; None for anything else."""
    if isinstance(value, Tensor):
        return f"{SHORT.get(str(value.dtype).removeprefix('torch.'), str(value.dtype))}[{', '.join(map(repr, sizes_of(value)))}]"
    if isinstance(value, SymValue):
        return f"Sym({value.expr!r})"
    return None
