"""What the tables of rules of tensor subclasses share: by which names they find ops (the operators of Python, the places of a
function), and rules that need no layout.
"""

from __future__ import annotations

from typing import Any

from ._C import Tensor, ops
from .nn import functional

__all__ = ["JOINS", "MOVES", "OPERATORS", "REFLECTED", "answer", "name_of", "named", "op_of", "places", "swapped"]

# Operators that are looked up by the names of Python's protocol.
OPERATORS = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__div__": "div",
    "__pow__": "pow",
    "__mod__": "remainder",
    "__floordiv__": "floor_divide",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__neg__": "neg",
    "__pos__": "positive",
    "__abs__": "abs",
    "__invert__": "bitwise_not",
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
}
# The reflected operators, which get their operands in the other order.
REFLECTED = {
    "__radd__": "add",
    "__rmul__": "mul",
    "__rsub__": "sub",
    "__rtruediv__": "div",
    "__rdiv__": "div",
    "__rpow__": "pow",
    "__rfloordiv__": "floor_divide",
    "__rmod__": "remainder",
    "__rand__": "bitwise_and",
    "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
}
# Ops that move the elements of a tensor, and those of a list of tensors.
MOVES = (
    "select transpose swapaxes swapdims split split_with_sizes chunk t _slice expand expand_as view view_as reshape reshape_as "
    "flatten unflatten unsqueeze squeeze unfold permute movedim moveaxis narrow unbind flip fliplr flipud roll repeat tile index_select "
    "gather take_along_dim diagonal tril triu rot90 ravel atleast_1d atleast_2d atleast_3d adjoint broadcast_to __getitem__"
).split()
JOINS = "cat concat concatenate stack hstack vstack row_stack dstack".split()


def answer(name: str) -> Any:
    """The rule of an op that is a method of the tensor, also where it is asked as a function."""

    def rule(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(*args, **kwargs)

    return rule


def swapped(rule: Any) -> Any:
    """The rule of a reflected operator."""
    return lambda self, other: rule(other, self)


def op_of(function: Any) -> Any:
    """The op that `ops.aten.sum` and `ops.aten.sum.dim_IntList` mean; another function as it is."""
    from . import _ops

    packet = function.overloadpacket if isinstance(function, _ops.OpOverload) else function
    return packet._function if isinstance(packet, _ops.OpOverloadPacket) else packet


def places(name: str) -> list[Any]:
    """The functions of a name: the op, the method and those of the namespaces."""
    import rustgrad as torch

    last = name.removeprefix("nn.functional.")
    found = (ops.get(name), getattr(Tensor, name, None), vars(torch).get(name))
    return [f for f in (*found, vars(functional).get(last) if last != name else None) if f is not None]


def name_of(function: Any) -> str:
    """The name of an op in errors; of the getter of a property that of the property."""
    name = getattr(function, "__name__", str(function))
    return getattr(function.__self__, "__name__", name) if name == "__get__" else name


def named(rule: Any) -> Any:
    """A rule that takes its first argument by any of its names."""

    def called(*args: Any, **kwargs: Any) -> Any:
        for first in ("input", "tensors", "self", "tensor"):
            if first in kwargs and not args:
                args = (kwargs.pop(first),)
        return rule(*args, **kwargs)

    return called
