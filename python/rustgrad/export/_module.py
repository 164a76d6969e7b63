"""`ExportedProgram.module`: the program as a module that is called like the exported one."""

from __future__ import annotations

import copy
import types
from typing import Any

from .._base import Tensor
from ..fx._codegen import CodeGen
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils import _pytree
from ._guards import input_guards
from ._values import keep_name, sizes_of
from .graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = ["module_of"]


class GuardsFn(Module):
    """Checks the arguments of a program. AssertionError with the condition that does not hold."""

    # A call of it stays in a graph though nobody uses its result.
    _is_impure = True

    def __init__(self, guards: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.guards = guards

    def forward(self, *args: Any) -> None:
        for text, holds in self.guards:
            if not holds(args):
                raise AssertionError(f"Guard failed: {text}")


class _Flattening:
    """What the code of a program calls to take its arguments apart."""

    @staticmethod
    def tree_flatten_spec(args: Any, spec: Any) -> list[Any]:
        positional, named = args
        return _pytree.tree_leaves((tuple(positional), named))


class _ProgramCode(CodeGen):
    """Code that takes arguments apart and puts results together."""

    def __init__(self, names: list[str], flat: list[str], count: int) -> None:
        self.names, self.flat, self.count = names, flat, count

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        positional, named = self.names[: self.count], self.names[self.count :]
        head = f"def forward({', '.join(['self', *positional, *named])}):"
        given = f"([{', '.join(positional)}], {{{','.join(f'{n!r}:{n}' for n in named)}}})"
        if not self.flat:
            return head
        return f"{head}\n    {', '.join(self.flat)}, = fx_pytree.tree_flatten_spec({given}, self._in_spec)"

    def generate_output(self, output_args: Any) -> str:
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        positional = args[: self.count]
        return _pytree.tree_leaves((positional, dict(zip(self.names[self.count :], args[self.count :]))))

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("fx_pytree", _Flattening), ("pytree", _pytree)]


def module_of(program: Any, check_guards: bool = True) -> GraphModule:
    """The module of a program."""
    signature = program.graph_signature
    graph = Graph()
    values: dict[Node, Node] = {}
    root = _root(program)
    targets = {s.arg.name: s for s in signature.input_specs}
    user: list[Node] = []
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    for node in placeholders:
        if targets[node.name].kind == InputKind.USER_INPUT:
            values[node] = graph.node_copy(node)
            keep_name(values[node], node.name)
            user.append(values[node])
    for node in placeholders:
        spec = targets[node.name]
        if spec.kind != InputKind.USER_INPUT:
            values[node] = graph.create_node("get_attr", spec.target, (), {}, str(spec.target).replace(".", "_"))
            values[node].meta = copy.copy(node.meta)
    guards = _guards(program) if check_guards else []
    if guards:
        root.add_module("_guards_fn", GuardsFn(guards))
        graph.create_node("call_module", "_guards_fn", tuple(user), {}, "_guards_fn")
    graph.owning_module = None
    for node in program.graph.nodes:
        if node.op not in ("placeholder", "output"):
            values[node] = graph.node_copy(node, lambda n: values[n])
    _finish(program, graph, values)
    in_spec, out_spec = program.call_spec.in_spec, program.call_spec.out_spec
    names, count = _parameter_names(program)
    graph.set_codegen(_ProgramCode(names, [n.name for n in user], count))
    made = GraphModule(root, graph, "GraphModule")
    for name, child in root.named_children():
        if name not in made._modules:
            made.add_module(name, child)
    _add_state(program, made)
    made._in_spec, made._out_spec = in_spec, out_spec
    made.training = program._training
    made.meta.update(program.graph_module.meta)
    made.register_forward_pre_hook(_checker(in_spec, names[count:]), with_kwargs=True)
    made.train = types.MethodType(_refuse("train"), made)  # type: ignore[method-assign]
    made.eval = types.MethodType(_refuse("eval"), made)  # type: ignore[method-assign]
    return made


def _finish(program: Any, graph: Graph, values: dict[Node, Node]) -> None:
    """The results; what stands for new values of buffers and arguments is written to them."""
    output = program.graph.output_node().args[0]
    results = []
    inputs = {s.arg.name: s for s in program.graph_signature.input_specs}
    by_target = {s.target: name for name, s in inputs.items() if s.target is not None}
    by_name = {n.name: values[n] for n in program.graph.nodes if n in values}
    from .._ops import ops

    for spec, result in zip(program.graph_signature.output_specs, output):
        value = values[result] if isinstance(result, Node) else result
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
            graph.create_node(
                "call_function", ops.aten.copy_.default, (by_name[by_target[spec.target]], value), {}, "copy_"
            )
        elif spec.kind == OutputKind.USER_INPUT_MUTATION:
            graph.create_node("call_function", ops.aten.copy_.default, (by_name[spec.target], value), {}, "copy_")
        elif spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            results.append(value)
    graph.output(tuple(results))


def _root(program: Any) -> Module:
    """A module with the state of a program, and graphs that its nodes name."""
    root = Module()
    for name, child in program.graph_module.named_children():
        root.add_module(name, child)
    _add_state(program, root)
    return root


def _add_state(program: Any, root: Module) -> None:
    persistent = {s.target: s.persistent for s in program.graph_signature.input_specs if s.kind == InputKind.BUFFER}
    constants = {s.target for s in program.graph_signature.input_specs if s.kind == InputKind.CONSTANT_TENSOR}
    for name, value in [*program.state_dict.items(), *program.constants.items()]:
        *path, leaf = name.split(".")
        owner = root
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, Module())
            owner = owner._modules[part]  # type: ignore[assignment]
        if isinstance(value, Parameter):
            owner._buffers.pop(leaf, None)
            owner.__dict__.pop(leaf, None)
            owner.register_parameter(leaf, value)
        elif name in constants:
            owner._buffers.pop(leaf, None)
            owner.__dict__[leaf] = value
        elif isinstance(value, Tensor):
            owner._buffers.pop(leaf, None)
            owner.register_buffer(leaf, value, persistent=bool(persistent.get(name, True)))


def _guards(program: Any) -> list[tuple[str, Any]]:
    leaves = program._leaves
    if leaves is None:
        return []
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    sizes = []
    checked = []
    for spec in specs:
        value = nodes[spec.arg.name].meta.get("val")
        sizes.append(list(sizes_of(value)) if isinstance(value, Tensor) else [])
        checked.append(isinstance(spec.arg, ConstantArgument))
    ranges = {e.symbol: (r.lower or 0, r.upper) for e, r in program.range_constraints.items() if e.symbol}
    return input_guards(leaves, sizes, ranges, program._guards, checked)


def _parameter_names(program: Any) -> tuple[list[str], int]:
    """The names of the parameters of `forward`, and how many are positional."""
    positional, named = program.call_spec.in_spec.children()
    signature = program.module_call_graph[0].signature
    names = list(signature.forward_arg_names or []) if signature else []
    count = positional.num_children
    keys = list(named.context)
    given = [n for n in names if n not in keys][:count]
    given += [f"arg{i}" if i >= len(names) else f"{names[-1]}_{i}" for i in range(len(given), count)]
    return [*given, *keys], count


def _checker(in_spec: Any, keywords: list[str]) -> Any:
    """A hook that checks the containers of a call's arguments, and puts those by name in order."""

    def check(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if set(kwargs) != set(keywords) and len(args) == in_spec.children()[0].num_children:
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {keywords}"
            )
        missing = [k for k in keywords if k not in kwargs]
        named = {k: kwargs[k] for k in [*keywords, *kwargs] if k in kwargs} if not missing else kwargs
        received = _pytree.tree_structure((args, named))
        if received != in_spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\nbut actually got inputs with tree spec of: \n"
                f"{received}.\nPlease check that the inputs have the same number and type of args and kwargs as the ones you used when "
                "tracing."
            )
        return args, named

    return check


def _refuse(name: str) -> Any:
    def method(self: Any, mode: bool = True) -> Any:
        raise NotImplementedError(f"Calling {name}() is not supported yet.")

    return method
