"""Frames and tracebacks in short."""

from __future__ import annotations

import os
import sys
import traceback
from types import FrameType, TracebackType

__all__: list[str] = []


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A path from where it leaves `base`, by default the folder of this package."""
    base = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) if base is None else base
    try:
        common = os.path.commonpath([base, fn])
    except ValueError:
        return fn
    return fn[len(common) + 1 :]


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """`file:line in function`, after the line of code if asked for."""
    code = f"{frame.line}  # " if line else ""
    return f"{code}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The last frame of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """The stack at a place: `CapturedTraceback.extract().format()`."""

    def __init__(self, stack: traceback.StackSummary) -> None:
        self.stack = stack

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack without its last `skip` frames and this one."""
        frame: FrameType | None = sys._getframe(1)
        for _ in range(skip):
            frame = frame.f_back if frame is not None else None
        return CapturedTraceback(traceback.extract_stack(frame))

    def summary(self) -> traceback.StackSummary:
        """The frames."""
        return self.stack

    def format(self) -> list[str]:
        """The frames as text."""
        return self.stack.format()
