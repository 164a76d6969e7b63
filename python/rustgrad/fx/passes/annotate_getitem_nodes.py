"""Types of the items of tuples and lists in a graph."""

from __future__ import annotations

import operator
import typing

from ..graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Sets the type of nodes that take an item of what has a type `tuple[..]`, `list[..]`, `dict[..]` or a named tuple."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        of, key = node.args
        kind = of.type
        if kind is None:
            continue
        args, origin = typing.get_args(kind), typing.get_origin(kind)
        if origin is tuple and args and isinstance(key, int):
            node.type = args[0] if args[-1] is Ellipsis else args[key]
        elif origin is list and args:
            node.type = args[0]
        elif origin is dict and args:
            node.type = args[1]
        elif isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields") and isinstance(key, int):
            node.type = typing.get_type_hints(kind).get(kind._fields[key])
