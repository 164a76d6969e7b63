"""What runs while a call is recorded: the Python functions that it reaches, and what breaks in from outside of it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from typing import Any

from ._audit import HOME, Audit

# Where code is that a call may reach unread: this package, and what the interpreter itself is made of (`abc`, imports).
_TRUSTED = (HOME, "<frozen ")
# Modules of C functions whose calls a plan would skip.
_OUTWARD = ("_warnings", "_thread", "time", "posix", "io")


class Calls:
    """Sees the Python functions that a recorded call reaches: each must be one that the audit has read, or our own.

    A handler of a signal that runs in between is none of them: `interrupted` says that the recording cannot be used.
    """

    def __init__(self, audit: Audit) -> None:
        self.known = audit.codes
        self.problem: str | None = None
        self.interrupted = False

    def __enter__(self) -> None:
        self.previous = sys.getprofile()
        sys.setprofile(self.see)

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(self.previous)

    def see(self, frame: Any, event: str, function: Any) -> None:
        """The profile function of the interpreter."""
        if self.interrupted or self.problem:
            return
        if event == "call":
            code = frame.f_code
            if id(code) not in self.known and not code.co_filename.startswith(_TRUSTED):
                if code in _handlers():
                    self.interrupted = True
                else:
                    self.problem = f"it calls {code.co_filename}:{code.co_firstlineno} ({code.co_name})"
        elif event == "c_call" and getattr(function, "__module__", "") in _OUTWARD:
            self.problem = f"it calls {function.__name__}()"


def _handlers():
    """The code of the functions that handle signals: they may run between any two instructions of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return []
    found = (signal.getsignal(number) for number in signal.valid_signals())
    functions: list[Any] = []
    for handler in (getattr(handler, "func", handler) for handler in found):  # of a `functools.partial`, its function
        functions += [handler, *(vars(k).get("__call__") for k in type(handler).__mro__)]
    return [f.__code__ for f in functions if hasattr(f, "__code__")]


def can_watch() -> bool:
    """Whether this thread's profile function, if any, can be put back: one that is written in C (`cProfile`'s) cannot."""
    previous = sys.getprofile()
    return previous is None or callable(previous)


class _Uncollected:
    """A block in which the garbage collector does not run, in any thread: it would run finalizers of others' garbage in
    the middle of a recorded call, as if that had called them.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.blocks = 0
        self.collects = False

    def __enter__(self) -> None:
        with self.lock:
            if self.blocks == 0:
                self.collects = gc.isenabled()
                gc.disable()
            self.blocks += 1

    def __exit__(self, *error: Any) -> None:
        with self.lock:
            # In a child that was forked within the block there is none any more.
            self.blocks = max(self.blocks - 1, 0)
            if self.blocks == 0 and self.collects:
                gc.enable()

    def forked(self) -> None:
        """In a child process: what the other threads recorded goes on in the parent alone."""
        self.lock = threading.RLock()
        if self.blocks and self.collects:
            gc.enable()
        self.blocks = 0


uncollected = _Uncollected()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uncollected.forked)
