"""`CSEPass`: what a graph computes twice is computed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....._ops import OpOverload, OpOverloadPacket
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = ("dropout", "_fused_dropout", "_standard_gamma", "bernoulli", "multinomial", "native_dropout", "normal", "poisson", "binomial",
           "rrelu", "rand_like", "rand", "randint", "randn", "randn_like", "randperm", "randint_like", "uniform", "exponential",
           "geometric", "log_normal", "cauchy", "random")  # fmt: skip


def get_CSE_banned_ops() -> set[Any]:
    """The ops that are computed each time: those that draw numbers or write to an argument."""
    from ..... import ops

    names = [*_RANDOM, *(f"{name}_" for name in _RANDOM)]
    return {getattr(ops.aten, name) for name in names}


def _plain(value: Any) -> Any:
    """An argument as a key: numbers of different types are different."""
    if isinstance(value, Node):
        return value
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in value.items())
    if isinstance(value, slice):
        return "slice", _plain(value.start), _plain(value.stop), _plain(value.step)
    return type(value), value


class CSEPass(PassBase):
    """Calls of the same function with the same arguments become one.

    Args:
        banned_ops (iterable): functions that are left as they are. Default: `get_CSE_banned_ops()`.
    """

    def __init__(self, banned_ops: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = set(banned_ops) if banned_ops is not None else get_CSE_banned_ops()

    def _may_join(self, node: Node) -> bool:
        if node.op != "call_function" or not isinstance(node.target, (OpOverload, OpOverloadPacket)):
            return False
        packet = node.target.overloadpacket if isinstance(node.target, OpOverload) else node.target
        schema = node.target._schema if isinstance(node.target, OpOverload) else None
        if node.target in self.banned_ops or packet in self.banned_ops or schema is not None and schema.is_mutable:
            return False
        return not packet.__name__.endswith("_") or packet.__name__.startswith("__")

    def call(self, graph_module: GraphModule) -> PassResult:
        """The module with a new graph."""
        graph, made, known, modified = Graph(), {}, {}, False
        for node in graph_module.graph.nodes:
            if not self._may_join(node):
                made[node] = graph.node_copy(node, lambda n: made[n])
                continue
            key = None
            try:
                args, kwargs = (_replaced(a, made) for a in (node.args, dict(node.kwargs)))
                key = node.target, _plain(args), _plain(kwargs)
                found = known.get(key)
            except TypeError:  # an argument that cannot be a key
                found = None
            if found is None:
                found = graph.node_copy(node, lambda n: made[n])
                if key is not None:
                    known[key] = found
            else:
                modified = True
            made[node] = found
        graph_module = GraphModule(graph_module, graph)
        return PassResult(graph_module, modified)


def _replaced(value: Any, made: dict[Node, Node]) -> Any:
    from ....node import map_arg

    return map_arg(value, lambda n: made[n])
