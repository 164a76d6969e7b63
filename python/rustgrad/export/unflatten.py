"""`torch.export.unflatten`: an exported program as the modules that it was exported from, each with its part of the graph."""

from __future__ import annotations

import abc
import copy
import operator
import sys
import types
from typing import Any

from .._base import Tensor
from ..fx.graph import Graph
from ..fx.interpreter import Interpreter
from ..fx.node import Node, map_arg
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils import _pytree
from .graph_signature import InputKind, OutputKind

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(abc.ABC):
    """Adapts arguments whose containers are not those of the exported call."""

    @abc.abstractmethod
    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: dict[str, Any] | None = None, obj: Any = None
    ) -> list[Any]:  # fmt: skip
        """The leaves of `target_spec` for those of `input_spec`."""

    def get_flat_arg_paths(self) -> list[str]:
        """The paths of the leaves."""
        return []


class InterpreterModule(Module):
    """A module that runs its graph node by node."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        graph.owning_module = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph."""
        return Interpreter(self, graph=self.graph).run(*args, *kwargs.values())

    def print_readable(self, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
        """The graph as text, which is printed too unless told otherwise."""
        text = f"class {self._get_name()}(torch.nn.Module):\n    {self.graph}"
        if print_output:
            print(text)
        return text


class UnflattenedModule(InterpreterModule):
    """An exported program as nested modules. Made by `unflatten`; called like the exported module.

    Parameters and buffers are copies. A module that the program calls several times has a part for each call (`name@1`).
    """

    def __init__(self, export_module: Any, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__(Graph())
        self.graph_signature = copy.deepcopy(export_module.graph_signature)
        self.module_call_graph = copy.deepcopy(export_module.module_call_graph)
        self.flat_args_adapter = flat_args_adapter
        self.meta = dict(export_module.graph_module.meta)
        self._spec = export_module.call_spec
        self._copy_state(export_module)
        _Splitter(self, export_module).split()

    def _copy_state(self, program: Any) -> None:
        made: dict[int, Any] = {}
        persistent = {s.target: s.persistent for s in program.graph_signature.input_specs if s.kind == InputKind.BUFFER}
        for name, value in [*program.state_dict.items(), *program.constants.items()]:
            if not isinstance(value, Tensor):
                continue
            owner, leaf = _owner(self, name)
            if id(value) not in made:
                fresh = value.detach().clone()
                made[id(value)] = Parameter(fresh, value.requires_grad) if isinstance(value, Parameter) else fresh
            new = made[id(value)]
            if isinstance(new, Parameter):
                owner.register_parameter(leaf, new)
            else:
                owner.register_buffer(leaf, new, persistent=bool(persistent.get(name, False)))

    def process_forward_inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The leaves of the arguments of a call.

        Raises:
            TypeError: other containers than those of the exported call, without an adapter.
        """
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        if spec == self._spec.in_spec:
            return leaves
        if self.flat_args_adapter is None:
            raise TypeError(
                "There is no flat args adapter specified. Are you sure you are calling this with the right arguments? "
            )
        return self.flat_args_adapter.adapt(self._spec.in_spec, spec, leaves, obj=self)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the exported module returns."""
        results = list(Interpreter(self, graph=self.graph).run(*self.process_forward_inputs(*args, **kwargs)))
        kept = []
        for spec, value in zip(self.graph_signature.output_specs, results):
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                owner, leaf = _owner(self, str(spec.target))
                getattr(owner, leaf).copy_(value)
            elif spec.kind == OutputKind.USER_OUTPUT:
                kept.append(value)
        return self._spec.out_spec.unflatten(kept)

    def finalize(self) -> None:
        """Does nothing: graphs are complete."""


def _owner(root: Module, path: str) -> tuple[Module, str]:
    """The module at a path without its last part, made where it is not there, and that part."""
    *parts, leaf = path.split(".")
    for part in parts:
        if part not in root._modules:
            root.add_module(part, InterpreterModule(Graph()))
        root = root._modules[part]  # type: ignore[assignment]
    return root, leaf


def _stack(node: Node) -> list[str]:
    """The paths of the modules that were running, from the outermost."""
    stack = node.meta.get("nn_module_stack") or {}
    return [path.partition("@")[0] for path, _ in stack.values() if path]


class _Splitter:
    """Distributes the nodes of a program among modules."""

    def __init__(self, root: UnflattenedModule, program: Any) -> None:
        self.root, self.program = root, program
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        self.states: dict[Node, str] = {}
        self.inputs: list[Node] = []
        for node in program.graph.nodes:
            if node.op == "placeholder":
                spec = specs[node.name]
                if spec.kind == InputKind.USER_INPUT:
                    self.inputs.append(node)
                else:
                    self.states[node] = str(spec.target)
        self.calls: dict[str, int] = {}

    def split(self) -> None:
        for name, child in self.program.graph_module.named_children():
            self.root.add_module(name, child)
        nodes = [n for n in self.program.graph.nodes if n.op not in ("placeholder", "output")]
        output = self.program.graph.output_node()
        self._fill(self.root, "", 0, nodes, self.inputs, output.args[0])

    def _fill(self, module: Any, path: str, depth: int, nodes: list[Node], inputs: list[Node], results: Any) -> None:
        """Gives a module its graph: nodes of modules within it become calls of them."""
        graph = module.graph = Graph()
        values: dict[Node, Node] = {}
        for node in inputs:
            values[node] = graph.placeholder(node.name)
            values[node].meta = copy.copy(node.meta)

        def value(node: Node) -> Node:
            if node not in values and node in self.states:
                target = self.states[node]
                name = target[len(path) + 1 :] if path else target
                values[node] = graph.create_node("get_attr", name, (), {}, name.replace(".", "_"))
                values[node].meta = copy.copy(node.meta)
            return values[node]

        at = 0
        while at < len(nodes):
            child = self._child(nodes[at], depth)
            if child is None:
                values[nodes[at]] = graph.node_copy(nodes[at], value)
                at += 1
                continue
            end = at
            while end < len(nodes) and self._child(nodes[end], depth) == child:
                end += 1
            self._call(module, path, child, depth, nodes[at:end], graph, values, value)
            at = end
        graph.output(map_arg(results, value))

    def _child(self, node: Node, depth: int) -> str | None:
        stack = _stack(node)
        return stack[depth] if depth < len(stack) else None

    def _call(self, module: Any, path: str, child: str, depth: int, nodes: list[Node], graph: Graph, values: Any, value: Any) -> None:  # fmt: skip
        inside = set(nodes)
        outer = list(dict.fromkeys(a for n in nodes for a in n.all_input_nodes if a not in inside))
        prefix = f"{child}."
        inputs = [n for n in outer if not (n in self.states and self.states[n].startswith(prefix))]
        outputs = [n for n in nodes if any(u not in inside for u in n.users)]
        count = self.calls.get(child, 0)
        self.calls[child] = count + 1
        name = (child[len(path) + 1 :] if path and child.startswith(f"{path}.") else child) + (
            f"@{count}" if count else ""
        )
        owner, leaf = _owner(module, name)
        made = owner._modules.get(leaf)
        if not isinstance(made, InterpreterModule):
            made = InterpreterModule(Graph())
            owner.add_module(leaf, made)
        if count:
            first = _owner(module, name.partition("@")[0])
            source = first[0]._modules[first[1]]
            made._parameters, made._buffers = source._parameters, source._buffers  # type: ignore[union-attr]
            made._modules = dict(source._modules)  # type: ignore[union-attr]
        results = outputs[0] if len(outputs) == 1 else tuple(outputs)
        self._fill(made, child, depth + 1, nodes, inputs, results)
        call = graph.call_module(name, tuple(value(n) for n in inputs))
        if len(outputs) == 1:
            values[outputs[0]] = call
            call.meta = copy.copy(outputs[0].meta)
            return
        for i, n in enumerate(outputs):
            values[n] = graph.call_function(operator.getitem, (call, i))
            values[n].meta = copy.copy(n.meta)


def unflatten(module: Any, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """An exported program as nested modules.

    Args:
        module (ExportedProgram): the program.
        flat_args_adapter (FlatArgsAdapter, optional): adapts arguments in other containers.

    Returns:
        UnflattenedModule: called like the exported module.
    """
    return UnflattenedModule(module, flat_args_adapter)


class _Callable(types.ModuleType):
    """`torch.export.unflatten` is a function and a module."""

    def __call__(self, *args: Any, **kwargs: Any) -> UnflattenedModule:
        return unflatten(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
