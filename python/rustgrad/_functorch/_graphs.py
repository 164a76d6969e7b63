"""Graphs of a function and of its gradient: traced as one, without writes in place, and divided in two."""

from __future__ import annotations

import types
from operator import getitem as _getitem
from typing import Any

from .._base import Tensor
from .._dispatch import _tracing
from .._ops import ops
from ..autograd import grad
from ..export._functionalize import _Rewriter
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node

__all__ = ["Traced", "divided", "joint", "module_of", "plain"]

aten = ops.aten
_BACKWARD = "is_backward"


class _WithoutWrites(_Rewriter):
    """A graph without writes; `changed`: the placeholders that were written, and the values that they have then."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(types.SimpleNamespace(graph=graph))
        self.changed: list[tuple[str, Node]] = []

    def _op(self, node: Node) -> None:
        name, args = node.target.overloadpacket.__name__, node.args
        if name == "native_batch_norm" and args[5] and args[3] is not None:
            value = node.meta["val"]
            found = [self.now(a) if isinstance(a, Node) else a for a in args]
            forms = (*value, args[3].meta["val"], args[4].meta["val"])
            made = self._call(node, aten._native_batch_norm_legit_functional.default, found, of=forms)
            self._new(node, made)
            items = [self._call(node, _getitem, (made, i), {}, "getitem", forms[i]) for i in range(5)]
            self._written(args[3], items[3])
            self._written(args[4], items[4])
            return
        super()._op(node)

    def _output(self, node: Node) -> Any:
        for entry in [e for n, e in self.entries.items() if n.op == "placeholder" and e.memory.writes]:
            self.changed.append((str(entry.memory.source), entry.memory.whole))
        values = [self.now(v) if isinstance(v, Node) else v for v in node.args[0]]
        self.graph.output((*(n for _, n in self.changed), *values))
        self._drop_unused()
        return self.graph, None


class Traced:
    """What was traced of a function of tensors.

    Attributes:
        root (GraphModule): where the graph's constants are.
        graph (Graph): of what the function returns and, if asked for, of its gradients.
        changed (list): the numbers of the arguments that are written.
        count (int): how many results there are, with what those arguments become; gradients follow.
    """

    def __init__(self, root: GraphModule, names: list[str], count: int) -> None:
        rewriter = _WithoutWrites(root.graph)
        self.graph, _ = rewriter.run()
        self.root = root
        places = {name: i for i, name in enumerate(names)}
        self.changed = [places[name] for name, _ in rewriter.changed]
        self.count = len(self.changed) + count

    @property
    def values(self) -> list[Any]:
        """What the graph returns."""
        return list(next(n for n in self.graph.nodes if n.op == "output").args[0])


def _placeholders(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if n.op == "placeholder"]


def _traced(function: Any, args: tuple[Any, ...], count: int, decompositions: Any) -> Traced:
    settings = {
        "decomposition_table": decompositions, "tracing_mode": "fake", "_allow_non_fake_inputs": False,
        "written_as": {},
    }  # fmt: skip
    made = _tracing.trace(function, args, settings)
    return Traced(made, [n.name for n in _placeholders(made.graph)], count)


def plain(function: Any, args: list[Any], count: int, decompositions: Any) -> Traced:
    """The graph of a function of tensors, which returns a list of `count` values, without gradients."""
    return _traced(lambda *flat: list(function(*flat)), tuple(args), count, decompositions)


def joint(function: Any, primals: list[Any], tangents: list[Any], count: int, decompositions: Any) -> Traced:
    """The graph of a function and of its gradients by the arguments that require one; the results that do have tangents."""

    def both(primals: Any, tangents: Any) -> Any:
        outs = list(function(*primals))
        mode = _tracing.current()
        before = set(mode.tracer.graph.nodes)
        wanted = [p for p in primals if isinstance(p, Tensor) and p.requires_grad]
        differentiable = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
        found = iter(grad(differentiable, wanted, tangents, allow_unused=True))
        grads = [next(found) if isinstance(p, Tensor) and p.requires_grad else None for p in primals]
        for node in mode.tracer.graph.nodes:
            if node not in before:
                node.meta[_BACKWARD] = True
        return [*outs, *grads]

    return _traced(both, (primals, tangents), count, decompositions)


def module_of(traced: Traced, inputs: list[Node], outputs: list[Any], nodes: Any = None) -> GraphModule:
    """Some nodes of a graph as a module: `inputs` are its arguments, `outputs` its results, `nodes` what is left between."""
    graph, made = Graph(), {}
    for node in inputs:
        made[node] = graph.placeholder(node.name)
        made[node].meta = dict(node.meta)
    for node in traced.graph.nodes:
        if node not in made and node.op not in ("placeholder", "output") and (nodes is None or node in nodes):
            made[node] = graph.node_copy(node, lambda n: made[n])
    graph.output(tuple(made[v] if isinstance(v, Node) else v for v in outputs))
    graph.eliminate_dead_code()
    return GraphModule(traced.root, graph)


def _used_by(outputs: list[Any]) -> set[Node]:
    """The nodes that values depend on."""
    found: set[Node] = set()
    todo = [v for v in outputs if isinstance(v, Node)]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += node.all_input_nodes
    return found


def divided(traced: Traced, count: int) -> tuple[GraphModule, GraphModule, int]:
    """The graphs of a function and of its gradient, and how many values the first gives the second.

    Args:
        count (int): how many of the placeholders are the arguments; the others are the tangents.

    The first returns what its arguments become, its results, and the values that the second takes before the tangents.
    """
    arguments = _placeholders(traced.graph)
    primals, tangents = arguments[:count], arguments[count:]
    results, grads = traced.values[: traced.count], traced.values[traced.count :]
    needed, backward = _used_by([*results, *grads]), set(tangents)
    for node in traced.graph.nodes:
        if node.op != "output" and (node.meta.get(_BACKWARD) or any(n in backward for n in node.all_input_nodes)):
            backward.add(node)
    backward -= _used_by(results)
    saved = [
        n
        for n in traced.graph.nodes
        if n not in backward
        and n in needed
        and n.op != "output"
        and (n in grads or any(u in backward and u in needed for u in n.users))
    ]
    first = module_of(traced, primals, [*results, *saved], {n for n in traced.graph.nodes if n not in backward})
    return first, module_of(traced, [*saved, *tangents], list(grads), backward), len(saved)
