"""Checks the graph of an exported program."""

from __future__ import annotations

from typing import Any

from .._ops import OpOverload, OpOverloadPacket

__all__ = ["SpecViolationError", "check"]


class SpecViolationError(Exception):
    """A graph has nodes that an exported program has not, or its signature names others."""


def check(program: Any, dialect: str) -> None:
    """SpecViolationError: see the class."""
    program.graph.lint()
    nodes = list(program.graph.nodes)
    for node in nodes:
        if node.op in ("call_module", "call_method"):
            raise SpecViolationError(f"call_{node.op[5:]} is not valid: got a {node.op} of '{node.target}'")
        if node.op != "call_function":
            continue
        target = node.target
        known = isinstance(target, (OpOverload, OpOverloadPacket)) or getattr(target, "__module__", "") == "_operator"
        if not known:
            raise SpecViolationError(f"Operator '{target}' is not an allowed operator type: expected ops and operators")
        if (
            dialect == "ATEN"
            and isinstance(target, OpOverload)
            and target._schema is not None
            and target._schema.is_mutable
        ):
            raise SpecViolationError(f"operator '{target}' is not functional")
    inputs = [n.name for n in nodes if n.op == "placeholder"]
    named = [s.arg.name for s in program.graph_signature.input_specs]
    if inputs != named:
        raise SpecViolationError(f"the signature names the inputs {named}, and the graph has {inputs}")
    for spec in program.graph_signature.input_specs:
        if spec.target is not None and spec.target not in {**program.state_dict, **program.constants}:
            raise SpecViolationError(f"'{spec.target}' is not in the state dict")
