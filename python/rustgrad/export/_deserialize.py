"""A program from the JSON of PyTorch's archives."""

from __future__ import annotations

import ast
import operator
import re
from typing import Any

from .. import _C
from .._aten_forms import find
from .._base import Tensor
from .._ops import OpOverload, ops, registered
from .._schema import overloads
from .._sources import is_identifier
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.modules.module import Module
from ..utils import _pytree
from ._codes import DTYPES, LAYOUTS, MEMORY_FORMATS, OPERATORS
from ._expr import Expr, _parsed, parse
from ._guards import Guard
from ._shapes import _under
from ._values import SymValue, ValueRanges, tensor_value
from .exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    TrainingIRVerifier,
    Verifier,
)
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

__all__ = ["program_of"]

MAJOR = 8


def program_of(data: dict[str, Any], state: dict[str, Any], constants: dict[str, Any], example: Any) -> ExportedProgram:
    """The program of a file.

    Raises:
        RuntimeError: a version of the format that is not known.
        NotImplementedError: an op, or a kind of argument, that is not here.
    """
    version = data["schema_version"]
    major = version["major"] if isinstance(version, dict) else int(version)
    if not 5 <= major <= MAJOR:
        raise RuntimeError(
            f"Serialized schema version {version} does not match our current schema version {{'major': {MAJOR}}}."
        )
    module = data["graph_module"]
    specs = module["signature"]["input_specs"]
    reader = _Reader(module["graph"], [s["constant_input"]["name"] for s in specs if "constant_input" in s])
    graph = reader.read()
    inputs, outputs = _signature(module["signature"])
    calls = [_call(entry) for entry in module["module_call_graph"]]
    ranges = {}
    for text, bounds in data["range_constraints"].items():
        ranges[parse(text)] = ValueRanges(bounds["min_val"], bounds["max_val"])
    # A constant that the file keeps beside its buffers may be a parameter of nothing.
    program = ExportedProgram(
        reader.submodules,
        graph,
        ExportGraphSignature(inputs, outputs),
        state,
        ranges,
        calls,
        example,
        constants,
        verifiers=[TrainingIRVerifier if "TRAINING" in data.get("verifiers", [data.get("dialect")]) else Verifier],
    )
    program._leaves = _leaves(program)
    program._guards = _guards(program, data.get("guards_code") or [])
    return program


def _name(text: Any) -> str:
    """A name in a file: it becomes a variable in the code of a module.

    Raises:
        RuntimeError: it is no identifier.
    """
    if not isinstance(text, str) or not is_identifier(text):
        raise RuntimeError(f"export.load: the file has a name {str(text)[:100]!r}; expected an identifier")
    return text


def _leaves(program: ExportedProgram) -> list[Any] | None:
    """The arguments of a call, for the texts of errors."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    user = [s.arg for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    leaves = [a.value if isinstance(a, ConstantArgument) else values[a.name] for a in user]
    signature = program.module_call_graph[0].signature
    if signature is None or len(leaves) != signature.in_spec.num_leaves:
        return None
    args, kwargs = signature.in_spec.unflatten(leaves)
    names = list(signature.forward_arg_names or [])
    positional = [n for n in names if n not in kwargs]
    found: list[Any] = []
    for i, value in enumerate(args):
        name = positional[i] if i < len(positional) else f"arg{i}"
        found += _under(value, name, f"L['{name}']", name)
    for key, value in kwargs.items():
        found += _under(value, key, f"L['{key}']", key)
    return found


def _guards(program: ExportedProgram, lines: list[str]) -> list[Guard]:
    """Conditions of a file that are comparisons of sizes."""
    sources: dict[str, Expr] = {}
    for leaf in program._leaves or ():
        if isinstance(leaf.value, Tensor):
            for axis, size in enumerate(leaf.value._sizes):
                if isinstance(size, Expr):
                    sources[f"{leaf.source}.size()[{axis}]"] = size
    signs = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
    found = []
    for line in lines:
        text = line
        for source, size in sources.items():
            text = text.replace(source, f"({size!r})")
        try:
            tree = ast.parse(text, mode="eval").body
            if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or "L[" in text:
                continue
            left, right = _parsed(tree.left, text), _parsed(tree.comparators[0], text)
        except (SyntaxError, ValueError):
            continue
        if left != right and left.constant is None:
            found.append(Guard(left, signs[type(tree.ops[0])], right if right.constant is None else right.constant))
    return found


def _call(entry: dict[str, Any]) -> ModuleCallEntry:
    s = entry["signature"]
    if s is None:
        return ModuleCallEntry(entry["fqn"], None)
    in_spec, out_spec = (_pytree.treespec_loads(s[name]) for name in ("in_spec", "out_spec"))
    names = s.get("forward_arg_names")
    keywords = [k for part in in_spec.children()[1:] for k in part.context or ()]
    list(map(_name, [*(names or ()), *keywords]))
    return ModuleCallEntry(entry["fqn"], ModuleCallSignature([], [], in_spec, out_spec, names))


def _constant(value: dict[str, Any]) -> Any:
    (kind, found), *_ = value.items()
    return None if kind == "as_none" else _float(found) if kind == "as_float" else found


_INPUTS = {
    "parameter": (InputKind.PARAMETER, "parameter_name"),
    "buffer": (InputKind.BUFFER, "buffer_name"),
    "tensor_constant": (InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
}
_OUTPUTS = {
    "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
    "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
    "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
    "gradient_to_parameter": (OutputKind.GRADIENT_TO_PARAMETER, "parameter_name"),
    "gradient_to_user_input": (OutputKind.GRADIENT_TO_USER_INPUT, "user_input_name"),
}


def _argument(arg: dict[str, Any]) -> Any:
    (kind, value), *_ = arg.items()
    if kind == "as_tensor":
        return TensorArgument(value["name"])
    if kind == "as_sym_int":
        return SymIntArgument(value["as_name"]) if "as_name" in value else ConstantArgument("", value["as_int"])
    return ConstantArgument("", _constant(arg))


def _signature(data: dict[str, Any]) -> tuple[list[InputSpec], list[OutputSpec]]:
    inputs, outputs = [], []
    for spec in data["input_specs"]:
        (kind, value), *_ = spec.items()
        if kind == "user_input":
            inputs.append(InputSpec(InputKind.USER_INPUT, _argument(value["arg"]), None))
        elif kind == "constant_input":
            inputs.append(
                InputSpec(InputKind.USER_INPUT, ConstantArgument(value["name"], _constant(value["value"])), None)
            )
        elif kind in _INPUTS:
            of, name = _INPUTS[kind]
            persistent = value.get("persistent", True) if of == InputKind.BUFFER else None
            inputs.append(InputSpec(of, TensorArgument(value["arg"]["name"]), value[name], persistent))
        else:
            raise NotImplementedError(f"export.load: an input of the kind '{kind}' is not supported")
    for spec in data["output_specs"]:
        (kind, value), *_ = spec.items()
        if kind == "user_output":
            outputs.append(OutputSpec(OutputKind.USER_OUTPUT, _argument(value["arg"]), None))
        elif kind == "loss_output":
            outputs.append(OutputSpec(OutputKind.LOSS_OUTPUT, TensorArgument(value["arg"]["name"]), None))
        elif kind in _OUTPUTS:
            output, name = _OUTPUTS[kind]
            outputs.append(OutputSpec(output, TensorArgument(value["arg"]["name"]), value[name]))
        else:
            raise NotImplementedError(f"export.load: an output of the kind '{kind}' is not supported")
    return inputs, outputs


def _float(value: Any) -> float:
    return float({"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}.get(value, value))


def _size(data: dict[str, Any]) -> tuple[Expr | int, int]:
    """A size as an expression, and the number that it is in the example."""
    if "as_int" in data:
        return data["as_int"], data["as_int"]
    expr = parse(data["as_expr"]["expr_str"])
    hint = data["as_expr"].get("hint") or {}
    number = hint.get("as_int", 1)
    return (expr if expr.constant is None else expr.constant), number if number is not None else 1


def target_of(name: str) -> Any:
    """The op of a name in a file. NotImplementedError if it is not here."""
    if name.startswith("_operator.") and name.partition(".")[2] in OPERATORS:
        return getattr(operator, name.partition(".")[2])
    parts = re.fullmatch(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?", name)
    if parts is not None:
        space, op, overload = parts.groups()
        if space == "aten":
            # Only what has a schema: other names reach methods of tensors that are no ops.
            known = bool(overloads(op)) and (find(op) is not None or op in _named())
        else:
            known = op in registered.get(space, {})
        if known:
            packet = getattr(getattr(ops, space), op)
            found = packet if space == "higher_order" else getattr(packet, overload or "default", None)
            if space == "higher_order" or isinstance(found, OpOverload):
                return found
    raise NotImplementedError(
        f"export.load: the op {name} is not here. Hint: an op of the program has to be registered (library.custom_op) before its "
        "file is loaded; run_decompositions() before export.save leaves ops that more libraries have"
    )


def _named() -> Any:
    from .._ops import _named

    return _named


class _Reader:
    """Makes the nodes of a graph."""

    def __init__(self, data: dict[str, Any], constants: list[str] | None = None) -> None:
        self.data, self.constants = data, list(constants or [])
        self.graph = Graph()
        self.nodes: dict[str, Node] = {}
        self.submodules = Module()

    def read(self) -> Graph:
        for arg in self.data["inputs"]:
            self._input(arg)
        for node in self.data["nodes"]:
            self._node(node)
        results = [self._value(a) for a in self.data["outputs"]]
        self.graph.output(results[0] if self.data.get("is_single_tensor_return") else tuple(results))
        return self.graph

    def _meta(self, name: str) -> Any:
        if name in self.data["tensor_values"]:
            meta = self.data["tensor_values"][name]
            sizes = [_size(s) for s in meta["sizes"]]
            stride = [_size(s)[1] for s in meta["strides"]]
            where = _C.device(meta["device"]["type"]) if meta["device"]["type"] in ("cpu", "meta") else _C.device("cpu")
            if meta["dtype"] not in DTYPES:
                raise NotImplementedError(f"export.load: the dtype number {meta['dtype']} is not here")
            kind = DTYPES[meta["dtype"]]
            return tensor_value(
                [s for s, _ in sizes], [n for _, n in sizes], stride, kind, where, meta["requires_grad"]
            )
        if name in self.data["sym_int_values"]:
            expr, number = _size(self.data["sym_int_values"][name])
            return SymValue(number, expr)
        return None

    def _named_node(self, node: Node, name: str) -> Node:
        self.graph._namespace.rename(node, _name(name))
        node.name = name
        node.meta["val"] = self._meta(name)
        self.nodes[name] = node
        return node

    def _input(self, arg: dict[str, Any]) -> None:
        (kind, value), *_ = arg.items()
        if kind in ("as_tensor", "as_sym_int"):
            name = _name(value.get("name", value.get("as_name")))
            self._named_node(self.graph.placeholder(name), name)
        else:
            name = _name(self.constants.pop(0)) if self.constants else f"arg_{len(self.graph.nodes)}"
            node = self._named_node(self.graph.placeholder(name), name)
            node.meta["val"] = _constant(arg)

    def _value(self, arg: dict[str, Any]) -> Any:
        (kind, value), *_ = arg.items()
        if kind == "as_none":
            return None
        if kind == "as_tensor":
            return self.nodes[value["name"]]
        if kind == "as_tensors":
            return [self.nodes[v["name"]] for v in value]
        if kind in ("as_optional_tensors", "as_optional_tensor"):
            listed = value if isinstance(value, list) else [value]
            found = [self.nodes[v["as_tensor"]["name"]] if "as_tensor" in v else None for v in listed]
            return found if isinstance(value, list) else found[0]
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._symbolic(value)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._symbolic(v) for v in value]
        if kind == "as_float":
            return _float(value)
        if kind == "as_floats":
            return [_float(v) for v in value]
        if kind == "as_complex":
            return complex(value["real"], value["imag"])
        if kind == "as_scalar_type":
            return DTYPES[value]
        if kind == "as_device":
            return _C.device(value["type"] if value["index"] is None else f"{value['type']}:{value['index']}")
        if kind == "as_layout":
            return LAYOUTS[value]
        if kind == "as_memory_format":
            return MEMORY_FORMATS[value]
        if kind == "as_graph":
            return self._graph(value)
        if kind in ("as_int", "as_bool", "as_string", "as_ints", "as_bools", "as_strings", "as_int_lists"):
            return value
        raise NotImplementedError(f"export.load: an argument of the kind '{kind}' is not supported")

    def _symbolic(self, value: dict[str, Any]) -> Any:
        return self.nodes[value["as_name"]] if "as_name" in value else next(iter(value.values()))

    def _graph(self, value: dict[str, Any]) -> Node:
        reader = _Reader(value["graph"])
        graph = reader.read()
        name = value["name"]
        while hasattr(self.submodules, name):
            name += "_"
        self.submodules.add_module(name, GraphModule(reader.submodules, graph))
        return self.graph.create_node("get_attr", name, (), {}, name)

    def _node(self, data: dict[str, Any]) -> None:
        target = target_of(data["target"])
        args = tuple(self._value(i["arg"]) for i in data["inputs"] if i.get("kind", 1) != 2)
        kwargs = {_name(i["name"]): self._value(i["arg"]) for i in data["inputs"] if i.get("kind", 1) == 2}
        if "kind" not in (data["inputs"] or [{"kind": 1}])[0]:
            args, kwargs = self._older(target, data["inputs"])
        outputs = data["outputs"]
        name = data.get("name") or data["target"].split(".")[3 if data["target"].startswith("torch.ops") else 1]
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        single = len(outputs) == 1 and "as_tensors" not in outputs[0]
        if single and data.get("is_hop_single_tensor_return") is not False and _name_of(outputs[0]):
            made = [self._named_node(node, _name_of(outputs[0]))]
        else:
            made = self._items(node, outputs)
        metadata = _metadata(data.get("metadata") or {})
        for n in [node, *made]:
            n.meta.update(metadata)

    def _older(self, target: Any, inputs: list[dict[str, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of files that do not say which are given by name: those that the op takes so."""
        schema = getattr(target, "_schema", None)
        named = {a.name for a in schema.arguments if a.keyword_only} if schema is not None else set()
        positional = [] if schema is None else [a.name for a in schema.arguments if not a.keyword_only]
        values = {i["name"]: self._value(i["arg"]) for i in inputs}
        if schema is None:
            return tuple(values.values()), {}
        args = []
        for i, name in enumerate(positional):
            if not any(later in values for later in positional[i:]):
                break
            args.append(values[name] if name in values else schema.arguments[i].default_value)
        return tuple(args), {k: v for k, v in values.items() if k in named}

    def _items(self, node: Node, outputs: list[dict[str, Any]]) -> list[Node]:
        names = [_name_of(o) for o in outputs]
        if len(outputs) == 1 and "as_tensors" in outputs[0]:
            names = [t["name"] for t in outputs[0]["as_tensors"]]
        made = []
        for i, name in enumerate(names):
            if name:
                item = self.graph.create_node("call_function", operator.getitem, (node, i), {}, "getitem")
                made.append(self._named_node(item, name))
        node.meta["val"] = tuple(n.meta["val"] for n in made) if outputs else None
        return made


def _name_of(output: dict[str, Any]) -> str:
    (kind, value), *_ = output.items()
    if kind == "as_none" or not isinstance(value, dict):
        return ""
    return str(value.get("name", value.get("as_name", "")))


def _metadata(data: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "stack_trace" in data:
        found["stack_trace"] = data["stack_trace"] + "\n"
    if "nn_module_stack" in data:
        parts = [p.split(",") for p in data["nn_module_stack"].split(";") if p.count(",") >= 2]
        found["nn_module_stack"] = {p[0]: (p[1], ",".join(p[2:])) for p in parts}
    if "torch_fn" in data:
        found["torch_fn"] = tuple(data["torch_fn"].split(";"))
    return found
