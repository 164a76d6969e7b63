"""The code and the graph of a function that was given to `script`: translated when they are looked at."""

from __future__ import annotations

import collections
import functools
from typing import Any

__all__ = ["Code", "later"]


class Code(collections.UserString):
    """The code of a function, or its declaration; a string in all but its class."""

    def __init__(self, function: Any, what: str = "code") -> None:
        self._function, self._what = function, what

    @functools.cached_property
    def data(self) -> str:  # type: ignore[override]
        """The text."""
        from . import _program

        return str(getattr(_program(self._function), self._what))

    def __getnewargs__(self) -> Any:
        return self._function, self._what


class _Graph:
    """The graph of a function; see `_graph.Graph`."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @functools.cached_property
    def _found(self) -> Any:
        from . import _program

        return _program(self._function).graph

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._found, name)

    def __repr__(self) -> str:
        return repr(self._found)


def later(function: Any) -> dict[str, Any]:
    """What a function has as attributes once it was given to `script`."""
    graph = _Graph(function)
    return {"code": Code(function), "graph": graph, "inlined_graph": graph, "schema": Code(function, "schema")}
