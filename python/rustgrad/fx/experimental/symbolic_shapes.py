"""Questions about sizes that PyTorch's tracers keep as symbols: sizes are numbers here, so each has its answer at once."""

from __future__ import annotations

from typing import Any

from ...utils._ordered_set import OrderedSet

__all__ = [
    "ConstraintViolationError",
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_scalar",
    "has_free_symbols",
    "is_concrete_bool",
    "is_concrete_int",
    "is_symbolic",
    "statically_known_true",
    "sym_eq",
]


class ConstraintViolationError(RuntimeError):
    """A size is not within its bounds."""


class GuardOnDataDependentSymNode(RuntimeError):
    """A program that is exported reads elements which depend on its inputs."""


def guard_bool(a: Any) -> bool:
    """The condition."""
    return bool(a)


guard_or_false = guard_or_true = guard_size_oblivious = guard_bool


def statically_known_true(x: Any) -> bool:
    """The condition."""
    if not isinstance(x, bool):
        raise AssertionError(f"Expected bool, got {type(x)}")
    return x


def statically_known_false(x: Any) -> bool:
    """Whether the condition does not hold."""
    return not statically_known_true(x)


def expect_true(a: Any, skip: int = 0) -> bool:
    """The condition."""
    return bool(a)


def guard_int(a: Any) -> int:
    """The number."""
    return int(a)


def guard_float(a: Any) -> float:
    """The number."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """The number."""
    return a


def free_symbols(val: Any) -> OrderedSet[Any]:
    """The symbols in numbers and shapes: none."""
    return OrderedSet()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """False."""
    return False


has_free_unbacked_symbols = is_symbolic = is_nested_int = has_free_symbols


def is_concrete_int(a: Any) -> bool:
    """True: a number is no symbol."""
    return True


def is_concrete_bool(a: Any) -> bool:
    """True: a condition is no symbol."""
    return True


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two numbers, or tuples of them, are equal."""
    return bool(x == y)


def __dir__() -> list[str]:
    return __all__
