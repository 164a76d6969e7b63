"""Sizes that may vary: ints that know how they were computed from the sizes of recorded tensors."""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["SymInt", "caller", "evaluate", "key_of", "leaves", "rebuilt", "watch"]

_COMPUTE: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


class SymInt(int):
    """An int with the expression that gives it: `("dim", value, axis)`, or an operation on two ints, each a `SymInt` or not."""

    expr: tuple[Any, ...]

    def __new__(cls, value: int, expr: tuple[Any, ...]) -> SymInt:
        new = int.__new__(cls, value)
        new.expr = expr
        return new

    def __neg__(self) -> int:
        return 0 - self

    def __pos__(self) -> int:
        return self

    def __pow__(self, n: Any, *modulus: Any) -> Any:
        if type(n) is int and 1 <= n <= 4 and not modulus:
            return self if n == 1 else self * self ** (n - 1)
        return int.__pow__(self, n, *modulus)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __reduce__(self) -> Any:
        return int, (int(self),)

    def __deepcopy__(self, memo: Any) -> int:
        return self


def _arithmetic(sign: str) -> tuple[Any, Any]:
    compute = _COMPUTE[sign]

    def forward(self: SymInt, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        return SymInt(compute(int(self), int(other)), (sign, self, other))

    def backward(self: SymInt, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        return SymInt(compute(int(other), int(self)), (sign, other, self))

    return forward, backward


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod")):
    _forward, _backward = _arithmetic(_sign)
    setattr(SymInt, f"__{_name}__", _forward)
    setattr(SymInt, f"__r{_name}__", _backward)


class _Watchers(threading.local):
    """Who is told of comparisons, while a program is recorded."""

    def __init__(self) -> None:
        self.all: list[Callable[[SymInt, Any, str], None]] = []


_here = _Watchers()


def _question(name: str) -> Any:
    answer = getattr(int, name)

    def asked(self: SymInt, other: Any = 0) -> Any:
        if _here.all:
            _here.all[-1](self, other, name)
        return answer(self, other) if name != "__bool__" else answer(self)

    return asked


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__"):
    setattr(SymInt, _name, _question(_name))
SymInt.__hash__ = int.__hash__  # type: ignore[method-assign]


class watch:
    """A block in which `seen(size, other, "__eq__")` is called for each comparison of sizes by the program."""

    def __init__(self, seen: Callable[[SymInt, Any, str], None]) -> None:
        self.seen = seen

    def __enter__(self) -> None:
        _here.all.append(self.seen)

    def __exit__(self, *error: Any) -> None:
        _here.all.pop()


def evaluate(number: Any, dim: Callable[[int, int], int]) -> int:
    """The value of a number where the sizes of tensors are what `dim(value, axis)` says."""
    if not isinstance(number, SymInt):
        return int(number)
    sign, left, right = number.expr
    if sign == "dim":
        return dim(left, right)
    return int(_COMPUTE[sign](evaluate(left, dim), evaluate(right, dim)))


def rebuilt(number: Any, dim: Callable[[int, int], int]) -> int:
    """The number computed again where the sizes of tensors are what `dim(value, axis)` says, which may be `SymInt` too."""
    if not isinstance(number, SymInt):
        return int(number)
    sign, left, right = number.expr
    if sign == "dim":
        return dim(left, right)
    answer: int = _COMPUTE[sign](rebuilt(left, dim), rebuilt(right, dim))
    return answer


def key_of(number: Any) -> Any:
    """What two numbers that are computed in the same way have in common."""
    if not isinstance(number, SymInt):
        return int(number) if isinstance(number, int) else number
    sign, left, right = number.expr
    return (sign, int(left), right) if sign == "dim" else (sign, key_of(left), key_of(right))


def leaves(number: Any) -> Iterator[tuple[int, int]]:
    """The sizes that a number is computed from: (value, axis)."""
    if isinstance(number, SymInt):
        sign, left, right = number.expr
        if sign == "dim":
            yield left, right
        else:
            yield from leaves(left)
            yield from leaves(right)


def caller(home: str) -> str:
    """The place of the innermost frame whose file is not under `home`, as `file:line`."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((home, "<frozen")):
            return f"{code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "an unknown line"
