"""Forward-mode differentiation: tensors that carry a tangent, which every op propagates.

Inside a `dual_level`, `make_dual(x, v)` is a view of `x` with the tangent `v`; what is computed from it carries its
Jacobian-vector product, which `unpack_dual` returns. The level's end drops its tangents. `func.jvp` nests; this does not.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .. import _C
from .._base import Tensor
from .._C import _is_fwd_grad_enabled
from .._formats import strided
from .grad_mode import context_decorator

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

# As in PyTorch: -1 outside of `dual_level`, 0 inside.
_current_level = -1
# The extension's number of that level, which counts those of `func.jvp` too.
_number = -1


def enter_dual_level() -> int:
    """Enters a level, in which dual tensors can be made, and returns it.

    Raises:
        RuntimeError: inside a level; `func.jvp` nests.
    """
    global _current_level, _number
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _number = _C._forward_enter()
    _current_level = 0
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the level and drops its tangents.

    Raises:
        RuntimeError: `level` is not the last one entered.
    """
    global _current_level, _number
    if level is None:
        level = _current_level
    if level != _current_level or level < 0:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _C._forward_exit(_number)
    _current_level = _number = -1


def _dual(tensor, tangent, number):
    """`make_dual` at a level of the extension."""
    for what, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
        if t.layout is not strided or t.is_nested:
            kind = "nested" if t.is_nested else f"of the layout {t.layout}"
            raise NotImplementedError(f"make_dual: the {what} is {kind}; expected dense tensors")
    return _C._make_dual(tensor, tangent, number)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` with the tangent `tangent`: the same object if it lies in memory as `tensor` does, else a copy.

    Differentiable in both.

    Args:
        tensor (Tensor), tangent (Tensor): floating-point or complex, of one size.
        level (int, optional): the current level.

    Raises:
        RuntimeError: outside of a level, where sizes differ, or where one of them has a tangent at the level.
        ValueError: one is neither floating-point nor complex.
    """
    if (_current_level if level is None else level) < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    return _dual(tensor, tangent, _number)


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns.

    Attributes:
        primal: a view of the tensor without its tangent.
        tangent: the tangent, or None.
    """

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor; the tangent is None where it has none. Differentiable."""
    if (_current_level if level is None else level) < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor, _number))


class dual_level:
    """A context manager, and decorator, inside of which dual tensors can be made.

    Example::

        with dual_level():
            x = make_dual(primal, tangent)
            y, y_tangent = unpack_dual(f(x))
    """

    def __call__(self, orig_func: Callable[P, R]) -> Callable[P, R]:
        return context_decorator(type(self), orig_func)

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled:
    """Turns forward mode on or off in this thread, at once and until the end of the block."""

    def __init__(self, mode: bool) -> None:
        self.prev = _is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _C._set_fwd_grad_enabled(self.prev)


def __dir__() -> list[str]:
    return __all__
