"""The graph of a pipe: which pipes it is made of."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Iterator
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

_PIPES = (IterDataPipe, MapDataPipe)
# Types of samples, of which a source may hold millions.
_LEAVES = frozenset((type(None), bool, int, float, complex, str, bytes, bytearray, range))
_CONTAINERS = (list, tuple, set, frozenset)
# From the id of a pipe to the pipe and the graph of its sources.
DataPipe = IterDataPipe[Any] | MapDataPipe[Any]
DataPipeGraph = dict[int, tuple[DataPipe, "DataPipeGraph"]]


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The graph of a pipe: a dict from its id to the pipe and the graph of its sources.

    Sources are the pipes in its attributes, also inside lists, tuples, sets and dicts, and in what those hold.

    Raises:
        RuntimeError: it is no pipe.
    """
    return _traverse(datapipe, True, frozenset())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """`traverse_dps`; with `only_datapipe=False` pipes that any attribute holds count, a bound method's for instance.
    Deprecated in PyTorch, and warns as it does there."""
    text = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        text += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _traverse(datapipe, bool(only_datapipe), frozenset())


def _traverse(datapipe, only_datapipe, above):
    """The graph below a pipe, without the pipes `above` it: pipes may hold themselves."""
    if not isinstance(datapipe, _PIPES):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    above = above | {id(datapipe)}
    below: dict[int, Any] = {}
    for source in _sources(datapipe, only_datapipe):
        if id(source) not in above:
            below.update(_traverse(source, only_datapipe, above))
    return {id(datapipe): (datapipe, below)}


def _sources(datapipe, only_datapipe):
    state = datapipe.__getstate__()
    parts = list(state.values()) if isinstance(state, dict) else state if isinstance(state, _CONTAINERS) else [state]
    if only_datapipe:
        parts = [part for part in parts if isinstance(part, (*_PIPES, *_CONTAINERS, dict))]
    return _pipes_in(parts)


def _pipes_in(values) -> Iterator[Any]:
    """The pipes that values are or hold, each once."""
    seen: set[int] = set()
    left = list(values)[::-1]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, _PIPES):
            yield value
        else:
            left += [part for part in _parts(value) if type(part) not in _LEAVES][::-1]


def _parts(value):
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, _CONTAINERS):
        return list(value)
    if isinstance(value, types.MethodType):
        return [value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return []
    return list(getattr(value, "__dict__", {}).values())
