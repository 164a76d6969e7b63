"""Names of PyTorch's dispatch to Python below autograd, of which there is none: a mode says so when it is entered."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NoReturn

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing"]


class TorchDispatchMode:
    """A context that would be handed the ops below autograd.

    Raises:
        NotImplementedError: on entering. `overrides.TorchFunctionMode` is handed the functions that are called.
    """

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: there is no dispatch of ops to Python below autograd. Hint: a "
            "torch.overrides.TorchFunctionMode is handed the functions that are called."
        )

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Not reached."""


def is_traceable_wrapper_subclass(t: object) -> bool:
    """False: no tensor wraps others below autograd."""
    return False


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """False: no tensor wraps others below autograd."""
    return False


def return_and_correct_aliasing(func: Callable[..., Any], args: Any, kwargs: Any, out: Any) -> Any:
    """`out` as it is."""
    return out


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """False: there are no such modes."""
    return False


def _get_current_dispatch_mode() -> None:
    """None: there are no such modes."""


def _get_current_dispatch_mode_stack() -> list[Any]:
    """No modes."""
    return []


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A block without modes, of which there are none."""
    yield []
