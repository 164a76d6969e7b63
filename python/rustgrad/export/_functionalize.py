"""Takes writes in place out of a graph: what is written is another value, and what inputs become is a result."""

from __future__ import annotations

import copy
import operator
from typing import Any

from .._base import Tensor
from .._dynamo.exc import UserError
from .._ops import OpOverload, ops
from .._schema import VIEWS, overloads
from ..fx.graph import Graph
from ..fx.node import Node, map_arg
from ._values import SymValue, keep_name, sizes_of
from .graph_signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec, TensorArgument

__all__ = ["functionalized"]

aten = ops.aten
# Ops that may return their argument or a view of it.
_MAYBE = {"reshape", "contiguous", "to", "flatten", "type_as", "ravel", "reshape_as"}
_KINDS = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


class _Memory:
    """Memory that nodes of the old graph share: the node of the new graph that has all of it, and how often it was written."""

    def __init__(self, whole: Node, source: str | None) -> None:
        self.whole, self.source, self.writes = whole, source, 0


class _Entry:
    """A value of the old graph: its memory, the views that lead to it, and its node in the new graph as of some write."""

    def __init__(self, memory: _Memory, views: tuple[Node, ...], node: Node) -> None:
        self.memory, self.views, self.node, self.writes = memory, views, node, memory.writes


def functionalized(program: Any) -> tuple[Graph, ExportGraphSignature]:
    """The graph of a program without writes, and its signature."""
    return _Rewriter(program).run()


class _Rewriter:
    def __init__(self, program: Any) -> None:
        self.program, self.graph = program, Graph()
        self.entries: dict[Node, _Entry] = {}
        self.plain: dict[Node, Node] = {}

    def run(self) -> tuple[Graph, ExportGraphSignature]:
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                made = self.graph.node_copy(node)
                keep_name(made, node.name)
                self.entries[node] = _Entry(_Memory(made, node.name), (), made)
            elif node.op == "output":
                return self._output(node)
            elif node.op == "call_function" and isinstance(node.target, OpOverload):
                self._op(node)
            else:
                self._other(node)
        raise AssertionError("the graph has no output")

    # --- values

    def now(self, node: Node) -> Node:
        """The node of the new graph that has a value of the old one as it is now."""
        if node in self.plain:
            return self.plain[node]
        entry = self.entries[node]
        if entry.writes != entry.memory.writes:
            value = entry.memory.whole
            for view in entry.views:
                value = self._view_of(view, value)
            entry.node, entry.writes = value, entry.memory.writes
        return entry.node

    def _view_of(self, view: Node, base: Node) -> Node:
        """A view taken again, of another base."""
        if view.target is operator.getitem:
            return self._call(view, operator.getitem, (self._view_of(view.args[0], base), view.args[1]), {}, "getitem")
        rest = map_arg(view.args[1:], self.now)
        return self._call(view, view.target, (base, *rest), map_arg(dict(view.kwargs), self.now))

    def _call(self, like: Node, target: Any, args: Any, kwargs: Any = None, name: str | None = None, of: Any = None) -> Node:  # fmt: skip
        name = name or target.overloadpacket.__name__
        made = self.graph.create_node("call_function", target, tuple(args), dict(kwargs or {}), name)
        made.meta = copy.copy(like.meta)
        if of is not None:
            made.meta["val"] = of
        return made

    def _new(self, node: Node, made: Node) -> None:
        if isinstance(node.meta.get("val"), (Tensor, tuple)):
            self.entries[node] = _Entry(_Memory(made, None), (), made)
        else:
            self.plain[node] = made

    # --- nodes

    def _other(self, node: Node) -> None:
        if node.target is operator.getitem and node.args[0] in self.entries:
            base = self.entries[node.args[0]]
            made = self._call(node, operator.getitem, (self.now(node.args[0]), node.args[1]), {}, "getitem")
            if base.views and base.views[-1] is node.args[0]:
                self.entries[node] = _Entry(base.memory, (*base.views[:-1], node), made)
            else:
                self._new(node, made)
            return
        made = self.graph.node_copy(node, self.now)
        self._new(node, made)

    def _op(self, node: Node) -> None:
        target, schema = node.target, node.target._schema
        name = target.overloadpacket.__name__
        if name == "batch_norm" and node.args[5] and node.args[3] is not None:
            self._batch_norm(node)
            return
        if schema is not None and schema.is_mutable:
            self._write(node, name)
            return
        made = self.graph.node_copy(node, self.now)
        first = node.args[0] if node.args and isinstance(node.args[0], Node) else None
        if first in self.entries and name in VIEWS and self._shares(node, first, name):
            base = self.entries[first]
            self.entries[node] = _Entry(base.memory, (*base.views, node), made)
        else:
            self._new(node, made)

    def _shares(self, node: Node, first: Node, name: str) -> bool:
        before, after = first.meta["val"], node.meta["val"]
        if name not in _MAYBE or not isinstance(after, Tensor):
            return True
        if name in ("to", "type_as", "contiguous"):
            return before.dtype == after.dtype and before.stride() == after.stride() and not node.kwargs.get("copy")
        try:
            return bool(before.detach().view(tuple(after.shape)).stride() == after.stride())
        except RuntimeError:
            return False

    def _batch_norm(self, node: Node) -> None:
        args = [self.now(a) if isinstance(a, Node) else a for a in node.args[:8]]
        mean, var = node.args[3], node.args[4]
        value = node.meta["val"]
        stats = [n.meta["val"] for n in (mean, var)]
        called = self._call(node, aten._native_batch_norm_legit_functional.default, args, of=(value, *stats, *stats))
        items = [
            self._call(node, operator.getitem, (called, i), {}, "getitem", v)
            for i, v in enumerate((value, *stats, *stats))
        ]
        self._new(node, items[0])
        for old, new in ((mean, items[3]), (var, items[4])):
            self._written(old, new)

    def _write(self, node: Node, name: str) -> None:
        """A write in place: its result is a new value of what it writes to."""
        target = node.args[0]
        writes = [a.name for a in node.target._schema.arguments if a.writes]
        functional = name.removesuffix("_") if name.endswith("_") and not name.startswith("__") else ""
        if name == "detach_":
            functional = "detach"
        overload = node.target._overload
        if len(writes) != 1 or not isinstance(target, Node) or overload not in overloads(functional):
            raise UserError(
                f"export.run_decompositions: {node.target} writes to {', '.join(writes)}, for which there is no other form"
            )
        op = getattr(getattr(aten, functional), overload)
        args = [map_arg(a, self.now) for a in node.args]
        made = self._call(node, op, args, map_arg(dict(node.kwargs), self.now), functional)
        if name == "detach_":
            base = self.entries[target]
            self.entries[node] = _Entry(base.memory, base.views, made)
            return
        if made.meta["val"].dtype != target.meta["val"].dtype:
            made = self._call(node, aten._to_copy.default, (made,), {"dtype": target.meta["val"].dtype})
        self._written(target, made)
        base = self.entries[target]
        self.entries[node] = _Entry(base.memory, base.views, made)

    def _written(self, target: Node, value: Node) -> None:
        """Makes a node the value of a tensor of the old graph, and of what it is a view of."""
        entry = self.entries[target]
        memory = entry.memory
        bases = [memory.whole]
        for view in entry.views[:-1]:
            bases.append(self._view_of(view, bases[-1]))
        made = value
        for view, base in zip(reversed(entry.views), reversed(bases)):
            made = self._back(view, base, made)
        memory.whole = made
        memory.writes += 1
        entry.node, entry.writes = value, memory.writes

    def _back(self, view: Node, base: Node, value: Node) -> Node:
        """`base` with `value` where the view is."""
        source = view.args[0]
        if view.target is operator.getitem:
            return self._back_part(source, int(view.args[1]), base, value)
        name, args = view.target.overloadpacket.__name__, [map_arg(a, self.now) for a in view.args[1:]]
        old = source.meta["val"]
        call = lambda op, *rest: self._call(view, op, rest, of=old)  # noqa: E731
        if name == "select":
            return call(aten.select_scatter.default, base, value, *args)
        if name == "slice":
            return call(aten.slice_scatter.default, base, value, *args)
        if name == "diagonal":
            return call(aten.diagonal_scatter.default, base, value, *args)
        if name == "unsqueeze":
            return call(aten.squeeze.dim, value, args[0])
        if name in ("transpose", "swapaxes", "swapdims"):
            return call(aten.transpose.int, value, *args)
        if name in ("t", "mT"):
            return call(aten.transpose.int, value, -2, -1)
        if name == "permute":
            order = [d % len(args[0]) for d in args[0]]
            return call(aten.permute.default, value, [order.index(d) for d in range(len(order))])
        if name in ("alias", "detach", "contiguous", "to", "type_as", "lift_fresh"):
            return value
        if (
            name in ("view", "reshape", "flatten", "squeeze", "unflatten", "view_as", "ravel")
            and view.meta["val"].dtype == old.dtype
        ):
            return call(aten.reshape.default, value, self._sizes(base, old))
        if name == "as_strided":
            return call(aten.as_strided_scatter.default, base, value, *args)
        raise UserError(f"export.run_decompositions: a write to the view that {view.target} makes has no other form")

    def _back_part(self, source: Node, index: int, base: Node, value: Node) -> Node:
        """The same for one of the views that an op makes."""
        name, args = source.target.overloadpacket.__name__, source.args
        old = source.args[0].meta["val"]
        dim = args[1 if name == "unbind" else 2] if len(args) > (1 if name == "unbind" else 2) else 0
        if name == "unbind":
            return self._call(source, aten.select_scatter.default, (base, value, dim, index), of=old)
        if name in ("split", "chunk", "split_with_sizes", "tensor_split"):
            parts = source.meta["val"]
            start = sum(p.shape[dim] for p in parts[:index])
            end = start + parts[index].shape[dim]
            return self._call(source, aten.slice_scatter.default, (base, value, dim, start, end), of=old)
        raise UserError(f"export.run_decompositions: a write to a view that {source.target} makes has no other form")

    def _sizes(self, base: Node, value: Tensor) -> list[Any]:
        """The sizes of a base: numbers, or nodes for those that vary."""
        found: list[Any] = []
        for axis, size in enumerate(sizes_of(value)):
            if isinstance(size, int):
                found.append(size)
                continue
            node = self.graph.create_node("call_function", aten.sym_size.int, (base, axis), {}, "sym_size_int")
            node.meta["val"] = SymValue(value.shape[axis], size)
            found.append(node)
        return found

    # --- results

    def _output(self, node: Node) -> tuple[Graph, ExportGraphSignature]:
        old = self.program.graph_signature
        specs: list[OutputSpec] = []
        values: list[Any] = []
        inputs = {s.arg.name: s for s in old.input_specs}
        for entry in [e for n, e in self.entries.items() if n.op == "placeholder"]:
            if entry.memory.writes:
                spec = inputs[str(entry.memory.source)]
                whole = entry.memory.whole
                if spec.kind not in _KINDS:
                    raise UserError(f"export.run_decompositions: the constant '{spec.target}' is written")
                target = spec.arg.name if spec.kind == InputKind.USER_INPUT else spec.target
                specs.append(OutputSpec(_KINDS[spec.kind], TensorArgument(whole.name), target))
                values.append(whole)
        for spec, value in zip(old.output_specs, node.args[0]):
            made = self.now(value) if isinstance(value, Node) else value
            arg = copy.copy(spec.arg)
            if isinstance(made, Node):
                arg.name = made.name
            specs.append(OutputSpec(spec.kind, arg, spec.target))
            values.append(made)
        self.graph.output(tuple(values))
        self._drop_unused()
        return self.graph, ExportGraphSignature(list(old.input_specs), specs)

    def _drop_unused(self) -> None:
        for node in reversed(list(self.graph.nodes)):
            if node.op == "call_function" and not node.users:
                name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
                if not name.startswith("_assert"):
                    self.graph.erase_node(node)
