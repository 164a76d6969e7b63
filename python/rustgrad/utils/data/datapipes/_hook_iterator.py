"""The iterator of a pipe: one is live at a time, it counts its samples, and its errors name the pipe.

`hook_iterator` wraps three methods of every class of pipes as it is defined, so that subclasses write plain ones:

- `__iter__` starts a new iterator, which invalidates the one before, and calls `reset`. Where it is a generator function
  that happens with the first sample, otherwise at once.
- `__next__`, where `__iter__` returns the pipe itself, counts samples.
- `reset` is left out once after a pipe was restored from a snapshot.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any


class _SnapshotState(Enum):
    """Where a pipe is: before its first iterator, restored (the next iterator goes on from there), or in use."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


_ISSUE = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: "
    "https://github.com/pytorch/data/issues/45."
)


def _text(value):
    """A value as it stands in messages: functions and pipes by their names."""
    from .datapipe import IterDataPipe

    if inspect.isfunction(value):
        return value.__name__
    return type(value).__name__ if isinstance(value, IterDataPipe) else repr(value)


def describe(datapipe: Any) -> str:
    """The class of a pipe with those arguments of its constructor that it keeps as attributes."""
    names = sorted(set(inspect.signature(type(datapipe).__init__).parameters) & set(vars(datapipe)))
    return f"{type(datapipe).__name__}({', '.join(f'{n}={_text(vars(datapipe)[n])}' for n in names)})"


def _claim(datapipe):
    """Makes the iterator that starts now the live one, and returns its number."""
    if datapipe._is_child_datapipe:
        return datapipe._set_main_datapipe_valid_iterator_id()
    last = datapipe._valid_iterator_id
    datapipe._valid_iterator_id = 0 if last is None else last + 1
    datapipe.reset()
    return datapipe._valid_iterator_id


def _check(datapipe, number):
    """RuntimeError: another iterator has started since."""
    if datapipe._is_child_datapipe:
        if not datapipe._check_valid_iterator_id(number):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the "
                f"ChildDataPipes of {describe(datapipe.main_datapipe)}.{_ISSUE}"
            )
    elif number != datapipe._valid_iterator_id:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{describe(datapipe)}\nThis may be caused by multiple references to the same IterDataPipe. We recommend "
            f"using `.fork()` if that is necessary.{_ISSUE}"
        )


def _take_restored(datapipe):
    """The iterator that a restored pipe goes on with, once; otherwise None."""
    restored = datapipe._fast_forward_iterator
    if restored is not None:
        datapipe._fast_forward_iterator = None
        datapipe._snapshot_state = _SnapshotState.Iterating
    return restored


def _add_origin(error, datapipe):
    """Adds to an error's message which pipe raised it, unless a pipe before it did."""
    phrase = "This exception is thrown by __iter__ of"
    first = error.args[0] if error.args else ""
    if isinstance(first, str) and phrase not in first:
        error.args = (f"{first}\n{phrase} {describe(datapipe)}", *error.args[1:])


def _hooked_generator(function):
    @functools.wraps(function)
    def __iter__(datapipe: Any) -> Iterator[Any]:
        if (restored := _take_restored(datapipe)) is not None:
            yield from restored
            return
        number = _claim(datapipe)
        stream, sent = function(datapipe), None
        while True:
            try:
                sample = stream.send(sent)
            except StopIteration:
                return
            except Exception as error:
                _add_origin(error, datapipe)
                raise
            datapipe._number_of_samples_yielded += 1
            sent = yield sample
            _check(datapipe, number)

    return __iter__


class _LiveIterator:
    """An iterator that a pipe returned, with the checks of a live one."""

    def __init__(self, datapipe, iterator, number):
        self.datapipe, self.iterator, self.number = datapipe, iterator, number
        # The pipe's own `__next__` counts.
        self.counts = iterator is datapipe and hasattr(type(datapipe), "__next__")

    def __iter__(self):
        return self

    def __next__(self):
        _check(self.datapipe, self.number)
        sample = next(self.iterator)
        if not self.counts:
            self.datapipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name):
        return getattr(self.iterator, name)


def _hooked_iter(function):
    @functools.wraps(function)
    def __iter__(datapipe: Any) -> Iterator[Any]:
        if (restored := _take_restored(datapipe)) is not None:
            return restored
        number = _claim(datapipe)
        return _LiveIterator(datapipe, function(datapipe), number)

    return __iter__


def _hooked_next(function):
    @functools.wraps(function)
    def __next__(datapipe: Any) -> Any:
        sample = function(datapipe)
        datapipe._number_of_samples_yielded += 1
        return sample

    return __next__


def _hooked_reset(function):
    @functools.wraps(function)
    def reset(datapipe: Any, *args: Any, **kwargs: Any) -> None:
        if datapipe._snapshot_state is not _SnapshotState.Restored:
            datapipe._number_of_samples_yielded = 0
            datapipe._fast_forward_iterator = None
            function(datapipe, *args, **kwargs)
        datapipe._snapshot_state = _SnapshotState.Iterating

    return reset


def hook_iterator(cls: type) -> None:
    """Wraps the methods that a class of pipes defines itself."""
    hooks: dict[str, Callable[[Any], Any]] = {
        "__iter__": _hooked_iter,
        "__next__": _hooked_next,
        "reset": _hooked_reset,
    }
    for name, hook in hooks.items():
        function = vars(cls).get(name)
        if not inspect.isfunction(function):
            continue
        if name == "__iter__" and inspect.isgeneratorfunction(function):
            hook = _hooked_generator
        setattr(cls, name, hook(function))
