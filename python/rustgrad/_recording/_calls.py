"""The mode that sees each call of a function, method or operator on tensors."""

from __future__ import annotations

import os
import sys
from typing import Any

from .. import _C
from .._base import Size, Tensor
from .._formats import strided
from .._op_defs import CustomOpDef
from .._ops import OpOverload, OpOverloadPacket
from ..overrides import TorchFunctionMode
from ._keys import ASKS, OF_DATA, READS, SIZES, op_key
from ._sizes import SymInt, caller
from ._trace import Question, Trace, Value, items, map_arguments

__all__ = ["HOME", "CallRecorder", "inside", "is_array", "plain_number"]

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The modules of `nn` are part of the program.
MODULES = os.path.join(HOME, "nn", "modules") + os.sep


class CallRecorder(TorchFunctionMode):
    """A mode that hands calls to `call`; those that ask for sizes are answered with ints that know where they come from.

    Args:
        known (Callable): `known(key, function)` says which ops stay whole, where they are written in Python.
        sizes (bool): whether sizes vary.
    """

    # Whether the program runs as it is, with gradients recorded.
    keeps_grad = False

    def __init__(self, known: Any, sizes: bool) -> None:
        self.known, self.sizes = known, sizes
        self.trace = Trace()

    def input(self, tensor: Tensor) -> None:
        """Takes a tensor as the next input."""
        raise NotImplementedError

    def output(self, tensor: Tensor) -> None:
        """Takes a tensor as the next result."""
        self.trace.outputs.append(self.read(tensor).number)

    def read(self, tensor: Tensor) -> Value:
        """The value of a tensor now."""
        raise NotImplementedError

    def sized(self, tensor: Tensor) -> int | None:
        """The number by which expressions of sizes name a tensor; None if its sizes do not vary."""
        value = self.read(tensor)
        return None if value.source == "outside" else value.number

    def depends(self, tensor: Tensor | None) -> bool:
        """Whether a tensor was computed from inputs."""
        raise NotImplementedError

    def restore(self) -> None:
        """Gives tensors from outside that were written the elements that they had."""
        raise NotImplementedError

    def call(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a call and records it."""
        raise NotImplementedError

    def question(self, size: SymInt, other: Any, sign: str) -> None:
        """Notes a comparison of sizes."""
        asker = sys._getframe(2).f_code.co_filename
        own = not asker.startswith(HOME) or asker.startswith(MODULES)
        self.trace.questions.setdefault(caller(HOME), []).append(Question(size, other, sign, own))

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        key = op_key(func)
        args, kwargs = map_arguments((args, kwargs or {}), _number if key in OF_DATA else plain_number)
        if key in ASKS:
            return func(*args, **kwargs)
        if key in SIZES:
            return self._size(key, func, args, kwargs)
        if key in READS:
            return self._element(key, func, args, kwargs)
        if key == "__iter__":
            with self:
                return iter(args[0].unbind(0))
        if not self.known(key, func) and (inner := inside(func)) is not None:
            with self:
                return inner(*args, **kwargs)
        return self.call(key, func, args, kwargs)

    def _size(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = func(*args, **kwargs)
        tensor = args[0]
        if not self.sizes or not isinstance(tensor, Tensor) or tensor.is_nested or tensor.layout is not strided:
            return answer
        number = self.sized(tensor)
        if number is None:
            return answer
        sizes = [SymInt(n, ("dim", number, axis)) for axis, n in enumerate(tensor.shape)]
        if key in ("numel", "nelement"):
            total: int = 1
            for n in sizes:
                total = total * n
            return total
        if key == "__len__":
            return sizes[0]
        if key == "size" and isinstance(answer, int):
            return sizes[args[1] if len(args) > 1 else kwargs["dim"]]
        return tuple.__new__(Size, sizes)

    def _element(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = [t for t in items((args, kwargs)) if isinstance(t, Tensor)]
        if any(self.read(t).depends for t in tensors):
            self.trace.reads.setdefault(caller(HOME), key)
        return func(*args, **kwargs)


def inside(function: Any) -> Any:
    """What a function that is written in Python, or an op of a program, does, without asking a mode; None for another one."""
    packet = function.overloadpacket if isinstance(function, OpOverload) else function
    if isinstance(packet, OpOverloadPacket):
        return packet._function if isinstance(packet._function, CustomOpDef) else None
    return getattr(function, "__wrapped__", None)


def is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") and not isinstance(value, Tensor)


def _number(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if is_array(value) and not hasattr(value, "__setitem__") else value


def plain_number(value: Any) -> Any:
    """An array as a tensor of its own memory: an op that a mode sees does not leave it to NumPy."""
    value = _number(value)
    return _C.tensor(value) if is_array(value) else value
