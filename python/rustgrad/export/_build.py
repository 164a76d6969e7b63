"""Makes the graph of an exported program from a recording."""

from __future__ import annotations

import contextlib
import operator
import re
from collections import OrderedDict
from typing import Any

from .._base import Tensor
from .._ops import ops
from .._recording._merge import BY_ELEMENTS, Merged
from .._recording._sizes import SymInt, key_of, leaves
from .._recording._trace import Ref, Step, Trace, map_arguments, refs
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.modules.module import Module
from ..utils import _pytree
from ._expr import Expr, of_size, symbol
from ._formula import formula
from ._shapes import Shapes, symbol_names, user_error
from ._values import SymValue, ValueRanges, keep_name, tensor_value
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

__all__ = ["GraphBuilder"]

_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


class GraphBuilder:
    """The nodes of a recorded program.

    Attributes:
        sources (dict): the expression of the size that each symbol is.
        dims (dict): the name of the `Dim` of a symbol, where it has one.
        ranges (dict): (least, largest) of each symbol; the largest is None without a bound.
        hints (dict): the size of each symbol in the example.
    """

    def __init__(
        self, module: Any, merged: Merged, shapes: Shapes, groups: dict[str, str], recorder: Any, traces: list[Trace]
    ) -> None:
        self.module, self.merged, self.shapes, self.recorder, self.traces = module, merged, shapes, recorder, traces
        self.trace = merged.trace
        self.leaves: dict[tuple[int, int], Expr | int] = {}
        self.sources: dict[str, str] = {}
        self.dims: dict[str, str] = {}
        self.ranges: dict[str, tuple[int, int | None]] = {}
        self.hints: dict[str, int] = {}
        self._unknown = 0
        self._name_symbols(groups)
        self.graph = Graph()
        self.nodes: dict[int, Node] = {}
        self.sizes: dict[Any, Node] = {}
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Tensor] = {}
        self.prologue: Node | None = None
        self.submodules = Module()
        self.regions = 0

    # --- sizes

    def _name_symbols(self, groups: dict[str, str]) -> None:
        order = [g for g in dict.fromkeys(groups.values()) if self.shapes.symbols[g].places]
        roots = [g for g in order if not self.shapes.symbols[g].derived]
        members = {g: [self.shapes.symbols[n] for n, of in groups.items() if of == g] for g in order}
        names = dict(zip(roots, symbol_names([self.shapes.source(self.shapes.symbols[g].places[0]) for g in roots])))
        for g in roots:
            name, at = names[g], self.shapes.symbols[g]
            self.leaves[self.merged.symbols[g]] = symbol(name)
            self.sources[name], self.hints[name] = self.shapes.source(at.places[0]), self.shapes.value(at)
            self.dims[name] = next((m.name for m in members[g] if m.kind == "named"), "")
            highs = [m.high for m in members[g] if m.high is not None]
            self.ranges[name] = max(m.low for m in members[g]), min(highs) if highs else None
        for g in order:
            derived = self.shapes.symbols[g].derived
            if derived:
                root, factor, offset = derived
                if root not in names:
                    raise user_error(f"export: Dim '{root}' is the size of no tensor; only '{g}' is")
                self.leaves[self.merged.symbols[g]] = symbol(names[root]) * factor + offset

    def expression(self, number: Any) -> Expr | int:
        """A size as an expression of symbols."""
        return of_size(number, self._leaf)

    def _leaf(self, value: int, axis: int) -> Expr | int:
        at = (value, axis)
        if at not in self.leaves:
            found = [t.values[value].shape[axis] for t in self.merged.traces]
            known = {s.symbol: at for at, s in self.leaves.items() if isinstance(s, Expr) and s.symbol in self.hints}
            runs = {s: [t.values[v].shape[a] for t in self.merged.traces] for s, (v, a) in known.items() if s}
            step = self.trace.values[value].step
            free = step is not None and (step.key in BY_ELEMENTS or self.merged.takes_mask(step))
            made = None if free else formula(found, runs)
            if made is None:
                made = symbol(f"u{self._unknown}")
                self.hints[f"u{self._unknown}"] = found[0]
                self.ranges[f"u{self._unknown}"] = (0, None)
                self._unknown += 1
            self.leaves[at] = made
        return self.leaves[at]

    def _number(self, number: Any) -> Any:
        """A size as an argument of a node: an int, or the node that computes it."""
        if not isinstance(number, SymInt):
            return number
        if not self.merged.is_dynamic(number):
            return int(number)
        key = key_of(number)
        if key in self.sizes:
            return self.sizes[key]
        sign, left, right = number.expr
        if sign == "dim":
            shape = self.merged.shapes[left][right]
            if isinstance(shape, SymInt) and shape.expr != number.expr:
                made = self._number(shape)
            else:
                made = self._size_node(left, right)
        else:
            made = self.graph.call_function(_OPERATORS[sign], (self._number(left), self._number(right)))
            made.meta["val"] = SymValue(int(number), self.expression(number))
        self.sizes[key] = made
        return made

    def _size_node(self, value: int, axis: int) -> Node:
        is_input = self.trace.values[value].step is None
        with self.graph.inserting_after(self.prologue) if is_input else contextlib.nullcontext():
            made = self.graph.create_node(
                "call_function", ops.aten.sym_size.int, (self.nodes[value], axis), {}, "sym_size_int_1"
            )
        if is_input:
            self.prologue = made
        made.meta["val"] = SymValue(self.trace.values[value].shape[axis], self._leaf(value, axis))
        return made

    # --- inputs

    def _placeholder(self, name: str, value: Any) -> Node:
        plain = re.sub(r"\W", "_", name)
        node = self.graph.placeholder(plain)
        if all(n.name != plain for n in self.graph.nodes if n is not node):
            keep_name(node, plain)
        node.target = node.name
        node.meta["val"] = value
        self.prologue = node
        return node

    def _outside(self) -> dict[int, list[int]]:
        """The values that are tensors from outside, by their identity."""
        found: dict[int, list[int]] = {}
        for value in self.trace.values:
            if value.source == "outside":
                found.setdefault(id(value.origin), []).append(value.number)
        return found

    def _state(self) -> None:
        """Placeholders of parameters, buffers and constants."""
        outside = self._outside()
        owners: dict[int, Node] = {}
        origins = {id(v.origin): v.origin for v in self.trace.values if v.source == "outside"}
        self.state: OrderedDict[str, Tensor] = OrderedDict()
        for name, p in self.module.named_parameters(remove_duplicate=False):
            node = owners[id(p)] = self._placeholder(f"p_{name}", _plain(p))
            self.inputs.append(InputSpec(InputKind.PARAMETER, TensorArgument(node.name), name))
            self.state[name] = p
        for name, b in self.module.named_buffers(remove_duplicate=False):
            node = owners[id(b)] = self._placeholder(f"b_{name}", _plain(b))
            persistent = self._persistent(name)
            self.inputs.append(InputSpec(InputKind.BUFFER, TensorArgument(node.name), name, persistent))
            (self.state if persistent else self.constants)[name] = b
        attributes = {id(v): n for n, v in self._attributes()}
        lifted = 0
        for key, tensor in origins.items():
            if key in owners:
                continue
            name = attributes.get(key)
            if name is None:
                name, lifted = f"lifted_tensor_{lifted}", lifted + 1
            node = owners[key] = self._placeholder(f"c_{name}", _plain(tensor))
            self.inputs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
            self.constants[name] = tensor.detach()  # type: ignore[union-attr]
        for key, numbers in outside.items():
            for number in numbers:
                self.nodes[number] = owners[key]

    def _persistent(self, path: str) -> bool:
        owner, _, name = path.rpartition(".")
        return name not in self.module.get_submodule(owner)._non_persistent_buffers_set

    def _attributes(self) -> Any:
        for path, module in self.module.named_modules():
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    yield f"{path}.{name}" if path else name, value

    def _arguments(self) -> None:
        """Placeholders of what a call is given."""
        numbers = iter(self.trace.inputs)
        for leaf in self.shapes.leaves:
            if isinstance(leaf.value, Tensor):
                number = next(numbers)
                node = self._placeholder(leaf.name, self._value(number, leaf.value))
                self.nodes[number] = node
                arg: Any = TensorArgument(node.name)
            else:
                node = self._placeholder(leaf.name, leaf.value)
                arg = ConstantArgument(node.name, leaf.value)
            self.inputs.append(InputSpec(InputKind.USER_INPUT, arg, None))

    def _value(self, number: int, like: Tensor | None = None) -> Tensor:
        value = self.trace.values[number]
        sizes = [self.expression(n) for n in self.merged.shapes[number]]
        if like is None:
            stride, device, requires_grad = *self.recorder.forms[number], False
        else:
            stride, device, requires_grad = like.stride(), like.device, like.requires_grad
        return tensor_value(sizes, value.shape, stride, value.dtype, device, requires_grad)

    # --- calls

    def _steps(self) -> None:
        done: set[int] = set()
        for step in self.trace.steps:
            region = self.recorder.info[id(step)].region
            if region is None:
                self._step(step)
            elif region.kind == "grad" and id(region) not in done:
                done.add(id(region))
                self._grad_region(region)

    # --- graphs in the graph

    def _needs(self, steps: list[Step], outputs: list[int]) -> list[int]:
        """The values that steps, and results among them, take from outside."""
        own = {n for s in steps for n in s.outputs}
        found: dict[int, None] = {}

        def note(value: Any) -> Any:
            if isinstance(value, Ref):
                found[value.number] = None
            elif isinstance(value, SymInt) and self.merged.is_dynamic(value):
                found.update(dict.fromkeys(self._leaves_of(value)))
            return value

        for s in steps:
            map_arguments((s.args, s.kwargs), note)
        found.update(dict.fromkeys(outputs))
        return [n for n in found if n not in own]

    def _leaves_of(self, number: SymInt) -> Any:
        for value, axis in leaves(number):
            shape = self.merged.shapes[value][axis]
            yield shape.expr[1] if isinstance(shape, SymInt) and shape.expr[0] == "dim" else value

    def _subgraph(self, steps: list[Step], inputs: list[int], outputs: list[int]) -> GraphModule:
        """A module of steps: `inputs` are its arguments, `outputs` its results."""
        outer = self.graph, self.nodes, self.sizes, self.prologue
        graph = Graph()
        nodes = {}
        for n in inputs:
            at = outer[1][n]
            known = next((nodes[m] for m in nodes if outer[1][m] is at), None)
            if known is None:
                known = graph.placeholder(at.name)
                known.meta["val"] = at.meta["val"]
                self.prologue = known
            nodes[n] = known
        self.graph, self.nodes, self.sizes = graph, nodes, {}
        try:
            for step in steps:
                self._step(step)
            graph.output(tuple(self.nodes[n] for n in outputs))
        finally:
            self.graph, self.nodes, self.sizes, self.prologue = outer
        return GraphModule(Module(), graph)

    def _attach(self, module: GraphModule, name: str) -> Node:
        self.submodules.add_module(name, module)
        return self.graph.create_node("get_attr", name, (), {}, name)

    def _once(self, numbers: list[int]) -> list[Node]:
        return list(dict.fromkeys(self.nodes[n] for n in numbers))

    def _grad_region(self, region: Any) -> None:
        own = {n for s in region.steps for n in s.outputs}
        inside = {id(s) for s in region.steps}
        later = [s for s in self.trace.steps if id(s) not in inside]
        used = {*self._needs(later, self.trace.outputs)} | {n for s in later for n in refs(s)}
        outputs = [n for n in own if n in used]
        inputs = self._needs(region.steps, outputs)
        module = self._subgraph(region.steps, inputs, outputs)
        self.regions += 1
        at = self._attach(module, f"submod_{self.regions}")
        target = ops.higher_order.wrap_with_set_grad_enabled
        node = self.graph.create_node("call_function", target, (region.grad, at, *self._once(inputs)), {}, "wrap")
        self._listed_results(node, outputs, list(range(len(outputs))))
        self._mark_all(node, self.recorder.info[id(region.steps[0])].place)

    def _cond(self, step: Step, branches: list[Any]) -> None:
        explicit = [r.number for r in step.args[3]]
        needed = [n for b in branches for n in self._needs(b.steps, b.outputs)]
        inputs = list(dict.fromkeys([*explicit, *needed]))
        before = self.graph._root._prev
        graphs = []
        count = sum(n.startswith("true_graph_") for n in self.submodules._modules)
        for name, branch in zip(("true_graph", "false_graph"), branches):
            module = self._subgraph(branch.steps, inputs, branch.outputs)
            graphs.append(self._attach(module, f"{name}_{count}"))
        args = (self.nodes[step.args[0].number], *graphs, tuple(self._once(inputs)))
        node = self.graph.create_node("call_function", step.function, args, {}, "cond")
        self._listed_results(node, step.outputs, step.places)
        self._mark_all(before.next, self.recorder.info[id(step)].place)

    def _listed_results(self, node: Node, numbers: list[int], places: list[int]) -> None:
        for number, place in zip(numbers, places):
            item = self.graph.create_node("call_function", operator.getitem, (node, place), {}, "getitem")
            item.meta["val"] = self._value(number)
            self.nodes[number] = item
        node.meta["val"] = tuple(self.nodes[n].meta["val"] for n in numbers)

    def _mark_all(self, node: Node, place: Any) -> None:
        while place is not None and node is not self.graph._root:
            self._mark(node, place)
            node = node.next

    def _step(self, step: Step) -> None:
        info = self.recorder.info[id(step)]
        if info.branches:
            self._cond(step, info.branches)
            return
        change = lambda v: self.nodes[v.number] if isinstance(v, Ref) else self._number(v)  # noqa: E731
        before = self.graph._root._prev
        args, kwargs = map_arguments((step.args, step.kwargs), change)
        node = self.graph.create_node("call_function", step.function, args, kwargs, _base(step.function))
        if info.listed:
            self._listed_results(node, step.outputs, step.places)
        elif step.outputs:
            node.meta["val"] = self._value(step.outputs[0])
            self.nodes[step.outputs[0]] = node
        else:
            node.meta["val"] = None
        self._hold_sizes(step)
        self._mark_all(before.next, info.place)

    def _mark(self, node: Node, place: Any) -> None:
        node.meta["stack_trace"] = place.stack_trace()
        stack = [("", self.module.__class__)] if not place.modules else []
        node.meta["nn_module_stack"] = {
            f"L__self__{path.replace('.', '_')}": (path, kind) for path, kind in [*stack, *place.modules]
        }
        node.meta["torch_fn"] = (f"{place.function}_1", f"function.{place.function}")

    def _hold_sizes(self, step: Step) -> None:
        """Where elements decide on a size that was the same in all runs, the program holds for that size: it says so if not."""
        if not (step.key in BY_ELEMENTS or self.merged.takes_mask(step)) or not self.recorder.loose.intersection(
            step.outputs
        ):
            return
        for number in step.outputs:
            sizes = self.merged.shapes[number]
            inputs = [self.merged.shapes[n] for n in refs(step)]
            if not any(isinstance(n, SymInt) for n in sizes) and sizes not in inputs:
                check = self.graph.create_node(
                    "call_function", ops.aten._assert_tensor_metadata.default, (self.nodes[number], [int(n) for n in sizes]), {},
                    "_assert_tensor_metadata",
                )  # fmt: skip
                check.meta["val"] = None

    # --- results

    def _results(self) -> tuple[Any, list[OutputSpec]]:
        columns = [_pytree.tree_leaves(t.result) for t in self.merged.traces]
        self.out_spec = _pytree.tree_structure(self.trace.result)
        if len({len(c) for c in columns}) > 1:
            raise user_error("export: the number of results differs between runs of the program")
        numbers = iter(self.trace.outputs)
        results: list[Any] = []
        specs = []
        for found in zip(*columns):
            leaf = found[0]
            if isinstance(leaf, Tensor):
                result: Any = self.nodes[next(numbers)]
            elif isinstance(leaf, int) and not isinstance(leaf, bool):
                result = self._number(self.merged._number(Step("return", None, (), {}, "the end"), list(found)))
            elif leaf is None or isinstance(leaf, (bool, float, str)):
                result = leaf
            else:
                raise user_error(
                    f"export: It looks like one of the outputs with type `{type(leaf)}` is not supported or pytree-flattenable. "
                    "Exported graphs return tensors, numbers, strings, None and containers of these; register its class with "
                    "torch.utils._pytree.register_pytree_node or torch.export.register_dataclass."
                )
            results.append(result)
            arg: Any = ConstantArgument("", result)
            if isinstance(result, Node):
                arg = (TensorArgument if isinstance(leaf, Tensor) else SymIntArgument)(result.name)
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        return tuple(results), specs

    def program(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], guards: Any, preserved: tuple[str, ...]
    ) -> ExportedProgram:
        """The exported program."""
        self._state()
        self._arguments()
        self._steps()
        results, outputs = self._results()
        self.graph.output(results)
        leaves, in_spec = _pytree.tree_flatten((args, kwargs))
        bounds_of = {**self.ranges, **guards.ranges}
        ranges = {symbol(s): ValueRanges(*bounds_of[s]) for s in bounds_of if self._is_used(s)}
        for leaf in self.leaves.values():
            if isinstance(leaf, Expr) and leaf.symbol is None and len(leaf.symbols()) == 1 and leaf in self._derived():
                low, high = guards.ranges[leaf.symbols()[0]]
                bounds = [None if n is None else leaf.value({leaf.symbols()[0]: n}) for n in (low, high)]
                ranges[leaf] = ValueRanges(*bounds)
        program = ExportedProgram(
            root=self.submodules,
            graph=self.graph,
            graph_signature=ExportGraphSignature(self.inputs, outputs),
            state_dict=self.state,
            range_constraints=ranges,
            module_call_graph=self._calls(in_spec, preserved),
            example_inputs=(args, kwargs),
            constants=self.constants,
        )
        program._guards = guards.guards
        program._leaves = self.shapes.leaves
        program._training = self.module.training
        return program

    def _places(self) -> Any:
        for step in self.trace.steps:
            if (where := self.recorder.info[id(step)].place) is not None:
                yield where

    def _derived(self) -> list[Any]:
        return [self.leaves[self.merged.symbols[n]] for n in self.merged.symbols if self.shapes.symbols[n].derived]

    def _is_used(self, name: str) -> bool:
        return not name.startswith("u") or any(
            name in e.symbols()
            for node in self.graph.nodes
            if isinstance(node.meta.get("val"), Tensor)
            for e in node.meta["val"]._sizes
            if isinstance(e, Expr)
        )

    def _calls(self, in_spec: Any, preserved: tuple[str, ...]) -> list[ModuleCallEntry]:
        names = [*{leaf.shown.split("[")[0].split(".")[0]: None for leaf in self.shapes.leaves}]
        signature = ModuleCallSignature([], [], in_spec, self.out_spec, names or None)
        entries = [ModuleCallEntry("", signature)]
        seen = dict.fromkeys(p for place in self._places() for p, _ in place.modules if p)
        known = dict(self.module.named_modules())
        for path in [*seen, *(p for p in preserved if p not in seen)]:
            if path not in known:
                raise user_error(f"export: preserve_module_call_signature: there is no module '{path}'")
            entries.append(ModuleCallEntry(path, None))
        return entries


def _plain(tensor: Any) -> Tensor:
    return tensor_value(
        tuple(tensor.shape), tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.requires_grad
    )


def _base(target: Any) -> str:
    name = getattr(getattr(target, "overloadpacket", target), "__name__", "call")
    return str(name)
