"""`torch._check` and its kin: conditions that code states about its arguments."""

from __future__ import annotations

from typing import Any, NoReturn

from ._base import Tensor
from .overrides import handle_torch_function, has_torch_function

__all__: list[str] = []


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raises RuntimeError if a tensor of one element is zero."""
    if not isinstance(input, Tensor):
        raise TypeError(f"_assert_async(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if not input:
        raise RuntimeError(assert_msg)


class _Symbolic:
    """A number that PyTorch's tracing knows by its name alone: nothing is one, sizes here are numbers."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__}: there are no symbolic numbers; sizes are ints")


class SymInt(_Symbolic):
    """For `isinstance(n, (int, torch.SymInt))` and annotations."""


class SymFloat(_Symbolic):
    """For `isinstance(x, (float, torch.SymFloat))` and annotations."""


class SymBool(_Symbolic):
    """For `isinstance(b, (bool, torch.SymBool))` and annotations."""


def _assert(condition: Any, message: Any) -> None:
    """`assert` as a function, which a traced graph can hold."""
    if type(condition) is not Tensor and has_torch_function((condition,)):
        handle_torch_function(_assert, (condition,), condition, message)
        return
    assert condition, message


def _check_with(error: type[Exception], cond: Any, message: Any = None) -> None:
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
            "elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        text = (
            "Expected cond to be True, but got False."
            if message is None
            else message()
            if callable(message)
            else message
        )
        raise error(str(text))


def _check(cond: Any, message: Any = None) -> None:
    """RuntimeError unless `cond` is True."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """IndexError unless `cond` is True."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """ValueError unless `cond` is True."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """TypeError unless `cond` is True."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """NotImplementedError unless `cond` is True."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """RuntimeError unless `i` is a size: not negative."""
    _check(bool(i >= 0), message)


def _check_tensor_all_with(error: type[Exception], cond: Any, message: Any = None) -> None:
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    _check_with(error, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """RuntimeError unless all elements are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
