"""A text that every Python has: the sources of modules of its standard library."""

from __future__ import annotations

import importlib.util
import pathlib

_MODULES = ("argparse", "bisect", "calendar", "configparser", "copy", "csv", "dataclasses", "fractions", "functools", "heapq", "queue", "random", "shlex", "statistics", "string", "textwrap")  # fmt: skip


def standard_library() -> str:
    """The sources of some modules, one after another: half a million characters of ASCII."""
    parts = []
    for name in _MODULES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            parts.append(pathlib.Path(spec.origin).read_text(encoding="utf-8"))
    return "".join(c for c in "\n".join(parts) if c.isascii())
