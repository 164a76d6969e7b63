"""Ops of ATen as other ops: tables for `make_fx(f, decomposition_table=...)` and `aot_function`.

A table has those ops for which there is a decomposition here; graphs keep the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._absent import getattr_of
from .._ops import OpOverload, OpOverloadPacket
from . import _rules

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "register_decomposition",
    "remove_decompositions",
]

# {overload: function of its arguments}.
decomposition_table: dict[Any, Callable[..., Any]] = dict(_rules.table)


def _overloads(op: Any) -> list[OpOverload]:
    if isinstance(op, OpOverload):
        return [op]
    if not isinstance(op, OpOverloadPacket):
        raise TypeError(f"decompositions: got {type(op).__name__}; expected an op of torch.ops")
    from .._schema import overloads

    names = list(overloads(op.__name__)) if op._namespace == "aten" else ["default"]
    return [getattr(op, name or "default") for name in names]


def register_decomposition(
    aten_op: Any, registry: dict[Any, Any] | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function runs in the place of an op, or of several, in graphs that are made with the table.

    Args:
        aten_op (op or list of ops): overloads, or ops for all their overloads.
        registry (dict, optional): another table than `decomposition_table`.

    Raises:
        RuntimeError: the table has the op already.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        table = decomposition_table if registry is None else registry
        for op in aten_op if isinstance(aten_op, (list, tuple)) else [aten_op]:
            for overload in _overloads(op):
                if overload in table and table[overload] is not function:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                table[overload] = function
        return function

    return register


def get_decompositions(
    aten_ops: Sequence[OpOverload | OpOverloadPacket], type: str = "post_autograd"
) -> dict[OpOverload, Callable[..., Any]]:
    """{overload: function} for those of the ops that have a decomposition."""
    table = decomposition_table
    wanted = [overload for op in aten_ops for overload in _overloads(op)]
    return {overload: table[overload] for overload in wanted if overload in table}


def remove_decompositions(
    decompositions: dict[Any, Callable[..., Any]], aten_ops: Sequence[OpOverload | OpOverloadPacket]
) -> None:
    """Takes ops out of a table."""
    for op in aten_ops:
        for overload in _overloads(op):
            decompositions.pop(overload, None)


def core_aten_decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions of ops that are not in the core of ATen."""
    return {op: f for op, f in decomposition_table.items() if op not in _rules.in_core}


_absent = getattr_of(__name__)


def __getattr__(name: str) -> Any:
    if name in ("global_decomposition_table", "decompositions"):
        return {"post_autograd": decomposition_table, "pre_autograd": {}, "meta": {}}
    return _absent(name)
