"""`annotate`: a type for a value of a graph."""

from __future__ import annotations

from typing import Any

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """`val`; while a function is traced, the node of a proxy gets the type.

    Raises:
        RuntimeError: the node has a type already.
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is {type}."
                " This could happen if you tried to annotate a function parameter value (in which case you should use the type slot"
                " on the function signature) or you called annotate on the same value twice"
            )
        val.node.type = type
    return val
