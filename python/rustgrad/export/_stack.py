"""Where a program is: its file and line, and the modules that are running."""

from __future__ import annotations

import linecache
import os
import sys
from typing import Any, NamedTuple

__all__ = ["Place", "place"]

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The modules of `nn` are part of the program.
_MODULES = os.path.join(_HOME, "nn", "modules") + os.sep
_EDGE = os.path.join(_HOME, "export", "_program.py")
_MACHINERY = os.path.join(_MODULES, "module.py")


class Place(NamedTuple):
    """A place in a program: frames from the outermost as (file, line, function), modules as (path, class), and the function called."""

    frames: tuple[tuple[str, int, str], ...]
    modules: tuple[tuple[str, str], ...]
    function: str

    def stack_trace(self) -> str:
        """The frames as Python shows them."""
        lines = []
        for file, line, function in self.frames:
            code = linecache.getline(file, line).strip()
            lines.append(f'  File "{file}", line {line}, in {function}\n' + (f"    {code}\n" if code else ""))
        return "".join(lines)


def place(modules: dict[int, str], function: str) -> Place:
    """Where the program is now. `modules` are the paths of the model's modules by identity."""
    frames, running = [], []
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file == _EDGE and code.co_name == "run_program":
            return Place(tuple(reversed(frames)), tuple(reversed(running)), function)
        inside = file.startswith(_HOME) and (not file.startswith(_MODULES) or file == _MACHINERY)
        if code.co_argcount and not inside:
            owner = frame.f_locals.get(code.co_varnames[0])
            path = modules.get(id(owner))
            if path is not None:
                name = f"{type(owner).__module__}.{type(owner).__qualname__}"
                if not running or running[-1][0] != path:
                    running.append((path, name))
        if not inside and not file.startswith("<frozen"):
            frames.append((file, frame.f_lineno, code.co_name))
        frame = frame.f_back
    # Not called by the program.
    return Place((), (), function)
