"""`run_decompositions`: a program recorded again, with other functions in the place of ops, and without writes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Tensor
from .._dynamo.exc import UserError
from .._ops import OpOverload, ops
from .._recording._errors import RecordingError
from .._recording._merge import Merged
from .._recording._runs import Inputs
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..utils import _pytree
from ._build import GraphBuilder
from ._exporter import _Recording
from ._expr import Expr
from ._functionalize import functionalized
from ._recorder import ExportRecorder
from ._shapes import Leaf, Shapes, Symbol
from .exported_program import ExportedProgram, Verifier
from .graph_signature import InputKind

__all__ = ["decomposed"]


class _Recorder(ExportRecorder):
    """A recorder that calls functions of a table in the place of ops."""

    def __init__(self, sizes: bool, table: dict[Any, Callable[..., Any]], replay: _Replay) -> None:
        super().__init__(sizes, {}, False)
        self.table, self.replay = table, replay
        replay.recorder = self

    def run(self, overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = self.table.get(overload)
        if function is not None:
            with self:
                result = function(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return super().run(overload, args, kwargs)

    def _append(self, step: Any, listed: bool) -> None:
        super()._append(step, listed)
        self.info[id(step)].place = self.replay.place


class _Replay:
    """Runs the nodes of a program one by one."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.place: Any = None
        self.recorder: Any = None

    def modules(self) -> Any:
        """None: the buffers of the program are written, not bound."""
        return []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        graph = self.module.graph
        values = _pytree.tree_leaves((args, kwargs))
        env: dict[Node, Any] = {}
        return self.module._out_spec.unflatten(self._run(self.module, graph, values, env))

    def _run(self, module: GraphModule, graph: Any, values: list[Any], env: dict[Node, Any]) -> Any:
        from ..fx.node import map_arg

        given = iter(values)
        for node in graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = _attribute(module, node.target)
            elif node.op == "output":
                return map_arg(node.args[0], lambda n: env[n])
            else:
                self.place = _place(node) or self.place
                plain, named = (map_arg(a, lambda n: env[n]) for a in (node.args, node.kwargs))
                env[node] = self._call(node.target, plain, named)
        return None

    def _call(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is ops.aten.sym_size.int:
            return args[0].size(args[1])
        return target(*args, **kwargs)


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _place(node: Node) -> Any:
    return _NodePlace(node.meta) if node.meta.get("stack_trace") else None


class _NodePlace:
    """The place of a node, which nodes that come of it take over."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self.meta = {k: meta[k] for k in ("stack_trace", "nn_module_stack", "torch_fn") if k in meta}
        self.modules: tuple[Any, ...] = ()


class _Builder(GraphBuilder):
    def _mark(self, node: Node, place: Any) -> None:
        node.meta.update(place.meta)


class _Again(_Recording):
    """Runs of a program, with the sizes varying that vary in it."""

    def __init__(self, program: ExportedProgram, module: GraphModule, table: dict[Any, Callable[..., Any]]) -> None:
        self.recorders = []
        args, kwargs = _example(program)
        self.shapes = _shapes_of(program, args, kwargs)
        replay = _Replay(module)

        def recorder(sized: bool) -> ExportRecorder:
            made = _Recorder(sized, table, replay)
            self.recorders.append(made)
            return made

        self.inputs = Inputs(replay, args, kwargs, recorder)
        self.groups: dict[str, str] = {}
        self.merged: Merged
        self.first = []


def _example(program: ExportedProgram) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with which the program runs."""
    from .. import _C

    if program.example_inputs is not None:
        args, kwargs = program.example_inputs
        return tuple(args), dict(kwargs)
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    leaves: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            value = values[spec.arg.name]
            like = isinstance(value, Tensor)
            leaves.append(_C.ops["zeros"](tuple(value.shape), dtype=value.dtype) if like else value)
    args, kwargs = program.call_spec.in_spec.unflatten(leaves)
    return tuple(args), dict(kwargs)


def _shapes_of(program: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Shapes:
    """The sizes that vary in a program."""
    shapes = Shapes.__new__(Shapes)
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    leaves = _pytree.tree_leaves((args, kwargs))
    old = program._leaves or [Leaf(s.arg.name, f"L['{s.arg.name}']", s.arg.name, None) for s in specs]
    shapes.leaves = [Leaf(s.arg.name, o.source, o.shown, leaf) for s, o, leaf in zip(specs, old, leaves)]
    shapes.tensors = [leaf for leaf in shapes.leaves if isinstance(leaf.value, Tensor)]
    shapes.symbols, shapes.roots = {}, {}
    for number, leaf in enumerate(shapes.tensors):
        for axis, size in enumerate(values[leaf.name]._sizes):
            if not isinstance(size, Expr):
                continue
            name = repr(size)
            if name not in shapes.symbols:
                bounds = program.range_constraints.get(size)
                low, high = (0, None) if bounds is None else (bounds.lower or 0, bounds.upper)
                made = shapes.symbols[name] = Symbol(name, "AUTO", low, high)
                if size.symbol is None:
                    root, *more = size.symbols()
                    offset, factor = size.value({root: 0}), size.value({root: 1}) - size.value({root: 0})
                    if more or size.value({root: 7}) != 7 * factor + offset:
                        raise UserError(
                            f"export.run_decompositions: the size {size!r} of an input is not linear in one symbol"
                        )
                    made.derived = (root, factor, offset)
            shapes.symbols[name].places.append((number, axis))
    return shapes


def decomposed(program: ExportedProgram, table: dict[Any, Callable[..., Any]]) -> ExportedProgram:
    """The program of `run_decompositions`."""
    from ._guards import Guards

    module = program.module(check_guards=False)
    again = _Again(program, module, dict(table))
    try:
        again.resolve()
    except RecordingError as error:
        raise UserError(f"export.run_decompositions: {error}") from error.__cause__
    builder = _Builder(module, again.merged, again.shapes, again.groups, again.recorders[0], again.first)
    guards = Guards(again.merged, builder, again.shapes, again.groups)
    made = builder.program(*_example(program), guards, ())
    graph, signature = functionalized(made)
    result = ExportedProgram(
        made.graph_module,
        graph,
        signature,
        program.state_dict,
        dict(made.range_constraints),
        program.module_call_graph,
        program.example_inputs,
        {**program.constants, **{k: v for k, v in made.constants.items() if k not in program.state_dict}},
        verifiers=[Verifier],
    )
    result._guards, result._leaves, result._training = program._guards, program._leaves, program._training
    return result
