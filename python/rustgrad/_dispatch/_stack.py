"""What a thread is in: its modes, blocks without dispatch, and ops that are recorded where they run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .. import _C

__all__ = ["Entry", "State", "entered", "entry", "forget", "is_entered", "place", "state"]

# The blocks of the extension module, which know nothing of what is below functions.
NoClasses = _C.DisableTorchFunctionSubclass
NoOverrides = _C.DisableTorchFunction


class State(threading.local):
    """The state of a thread.

    Attributes:
        modes (list): the modes, innermost last.
        disabled (int): in how many blocks without dispatch.
        through (int): in how many functions of wrappers that are taken apart, whose gradients may be wrappers.
        hidden (int): in how many blocks in which nothing overrides functions.
        records (bool): whether autograd recorded around the call that is answered.
        frames (list): calls whose op, once it runs, is recorded by autograd itself.
    """

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.disabled = 0
        self.frames: list[Any] = []
        self.through = 0
        self.hidden = 0
        self.records = True

    def active(self) -> list[Any]:
        """The modes that are asked."""
        return [] if self.disabled else self.modes


state = State()


class Entry:
    """The mode of functions below all others, through which calls come to dispatch."""

    _is_of_dispatch = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._entry import of_mode

        return of_mode(func, types, args, kwargs or {})


entry = Entry()


def is_entered() -> bool:
    """Whether calls of functions come to the entry."""
    return any(_C._get_function_stack_at(level) is entry for level in range(_C._len_torch_function_stack()))


def place(present: bool) -> None:
    """Puts the entry below the modes of functions that this thread is in, or takes it away."""
    modes = []
    while (mode := _C._pop_torch_function_mode()) is not None:
        if mode is not entry:
            modes.append(mode)
    if present:
        _C._push_torch_function_mode(entry)
    for mode in reversed(modes):
        _C._push_torch_function_mode(mode)


def forget() -> None:
    """Takes the entry away where nothing needs it."""
    if not state.modes:
        place(False)


@contextlib.contextmanager
def entered() -> Iterator[None]:
    """A block whose calls of functions come to the entry, where a mode is left or classes are not asked."""
    if is_entered() or not (state.active() or not _C._is_torch_function_enabled()):
        yield
        return
    place(True)
    try:
        yield
    finally:
        place(False)


class _Below:
    """A block of the extension module, in which dispatch goes on all the same."""

    _kind: Any = None

    def __init__(self) -> None:
        self._left: list[Any] = []

    def __enter__(self) -> None:
        block, placed = self._kind(), not is_entered()
        block.__enter__()
        if placed:
            place(True)
        self._left.append((block, placed))

    def __exit__(self, *raised: Any) -> None:
        block, placed = self._left.pop()
        if placed:
            forget()
        block.__exit__(*raised)


_all_disabled, _length = _C._is_torch_function_all_disabled, _C._len_torch_function_stack


def is_all_disabled() -> bool:
    """Whether neither classes nor modes are asked about functions in this thread."""
    return _all_disabled() or (state.hidden > 0 and not _C._is_torch_function_enabled())


def is_mode_enabled() -> bool:
    """Whether this thread is in a mode of functions that is asked."""
    return not is_all_disabled() and _length() > is_entered()


class DisableTorchFunctionSubclass(_Below):
    """A block in which subclasses of `Tensor` override no functions; their `__torch_dispatch__` is asked."""

    _kind = NoClasses


class DisableTorchFunction:
    """A block in which neither subclasses nor modes override functions; `__torch_dispatch__` is asked."""

    def __init__(self) -> None:
        self._left: list[Any] = []

    def __enter__(self) -> None:
        block = NoClasses()
        block.__enter__()
        # Above the others, which are not asked then.
        _C._push_torch_function_mode(entry)
        state.hidden += 1
        self._left.append(block)

    def __exit__(self, *raised: Any) -> None:
        state.hidden -= 1
        _C._pop_torch_function_mode()
        self._left.pop().__exit__(*raised)
