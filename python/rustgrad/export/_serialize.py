"""A program as the JSON of PyTorch's archives."""

from __future__ import annotations

import math
import operator
from typing import Any

from .._base import Tensor, device, dtype
from .._formats import layout, memory_format
from .._ops import OpOverload, OpOverloadPacket
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..utils import _pytree
from ._codes import DTYPE_CODES, LAYOUTS, MEMORY_FORMATS, OPERATORS
from ._expr import Expr
from ._values import SymValue, sizes_of, strides_of
from .graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument

__all__ = ["program_json", "tensor_meta"]

SCHEMA_VERSION = {"major": 8, "minor": 20}
ATEN_OPSET = 10
TORCH_VERSION = "2.15.0"
_LAYOUT_CODES = {v: k for k, v in LAYOUTS.items()}
_FORMAT_CODES = {v: k for k, v in MEMORY_FORMATS.items()}


def program_json(program: Any, opset_version: dict[str, int] | None) -> dict[str, Any]:
    """The object that becomes `model.json`."""
    ranges = {}
    for expr, bounds in program.range_constraints.items():
        ranges[repr(expr)] = {"min_val": bounds.lower, "max_val": bounds.upper}
    return {
        "graph_module": {
            "graph": _Writer(program.graph_module).graph(),
            "signature": _signature(program.graph_signature),
            "module_call_graph": [_call(entry) for entry in program.module_call_graph],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": ATEN_OPSET, **(opset_version or {})},
        "range_constraints": ranges,
        "schema_version": SCHEMA_VERSION,
        "verifiers": [program.dialect],
        "torch_version": TORCH_VERSION,
        "guards_code": _guards(program),
    }


def _guards(program: Any) -> list[str]:
    names: dict[str, str] = {}
    lines = []
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    for leaf, spec in zip(program._leaves or (), specs):
        value = values[spec.arg.name]
        for axis, size in enumerate(sizes_of(value)) if isinstance(value, Tensor) else ():
            if isinstance(size, Expr) and size.symbol:
                here = f"{leaf.source}.size()[{axis}]"
                if size.symbol in names:
                    lines.append(f"{names[size.symbol]} == {here}")
                names.setdefault(size.symbol, here)
    return lines + [g.shown(names) for g in program._guards]


def _call(entry: Any) -> dict[str, Any]:
    s = entry.signature
    if s is None:
        return {"fqn": entry.fqn, "signature": None}
    return {
        "fqn": entry.fqn,
        "signature": {
            "inputs": [],
            "outputs": [],
            "in_spec": _pytree.treespec_dumps(s.in_spec, 1),
            "out_spec": _pytree.treespec_dumps(s.out_spec, 1),
            "forward_arg_names": s.forward_arg_names,
        },
    }


def _constant(value: Any) -> dict[str, Any]:
    return _plain(value) if value is not None else {"as_none": True}


def _argument_of(arg: Any) -> dict[str, Any]:
    if isinstance(arg, ConstantArgument):
        return _constant(arg.value)
    if isinstance(arg, SymIntArgument):
        return {"as_sym_int": {"as_name": arg.name}}
    return {"as_tensor": {"name": arg.name}}


_INPUTS = {
    InputKind.PARAMETER: ("parameter", "parameter_name"),
    InputKind.BUFFER: ("buffer", "buffer_name"),
    InputKind.CONSTANT_TENSOR: ("tensor_constant", "tensor_constant_name"),
}
_OUTPUTS = {
    OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
    OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
    OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
    OutputKind.GRADIENT_TO_PARAMETER: ("gradient_to_parameter", "parameter_name"),
    OutputKind.GRADIENT_TO_USER_INPUT: ("gradient_to_user_input", "user_input_name"),
}


def _signature(signature: Any) -> dict[str, Any]:
    inputs: list[Any] = []
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            if isinstance(spec.arg, ConstantArgument):
                value = {"name": spec.arg.name, "value": _constant(spec.arg.value)}
                inputs.append({"constant_input": value})
            else:
                inputs.append({"user_input": {"arg": _argument_of(spec.arg)}})
            continue
        if spec.kind not in _INPUTS:
            raise NotImplementedError(
                f"export.save: the input '{spec.arg.name}' is a {spec.kind.name}, which is not saved"
            )
        key, name = _INPUTS[spec.kind]
        inputs.append({key: {"arg": {"name": spec.arg.name}, name: spec.target}})
        if spec.kind == InputKind.BUFFER:
            inputs[-1][key]["persistent"] = bool(spec.persistent)
    outputs: list[Any] = []
    for spec in signature.output_specs:
        if spec.kind == OutputKind.USER_OUTPUT:
            outputs.append({"user_output": {"arg": _argument_of(spec.arg)}})
        elif spec.kind == OutputKind.LOSS_OUTPUT:
            outputs.append({"loss_output": {"arg": {"name": spec.arg.name}}})
        else:
            key, name = _OUTPUTS[spec.kind]
            outputs.append({key: {"arg": {"name": spec.arg.name}, name: spec.target}})
    return {"input_specs": inputs, "output_specs": outputs}


def _size(size: Any, hint: int) -> dict[str, Any]:
    if not isinstance(size, Expr):
        return {"as_int": int(size)}
    text = size.written(lambda name: not name.startswith("u"))
    return {"as_expr": {"expr_str": text, "hint": {"as_int": hint}}}


def tensor_meta(value: Tensor, place: Any = None) -> dict[str, Any]:
    """What is written of a tensor: dtype, sizes, strides, device."""
    where = place or getattr(value, "_device", value.device)
    return {
        "dtype": DTYPE_CODES[value.dtype],
        "sizes": [_size(s, n) for s, n in zip(sizes_of(value), value.shape)],
        "requires_grad": value.requires_grad,
        "device": _device(where),
        "strides": [_size(s, n) for s, n in zip(strides_of(value), value.stride())],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def _device(where: Any) -> dict[str, Any]:
    return {"type": where.type, "index": where.index}


def _float(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any) -> dict[str, Any]:
    """A value that is no node, as the kind of argument that it is."""
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": int(value)}
    if isinstance(value, float):
        return {"as_float": _float(value)}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, complex):
        return {"as_complex": {"real": value.real, "imag": value.imag}}
    if isinstance(value, dtype):
        return {"as_scalar_type": DTYPE_CODES[value]}
    if isinstance(value, device):
        return {"as_device": _device(value)}
    if isinstance(value, layout):
        return {"as_layout": _LAYOUT_CODES[value]}
    if isinstance(value, memory_format):
        return {"as_memory_format": _FORMAT_CODES[value]}
    raise NotImplementedError(f"export.save: an argument of type {type(value).__name__} is not saved")


class _Writer:
    """The graph of a module as JSON."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.tensors: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}

    def graph(self) -> dict[str, Any]:
        inputs, nodes, outputs, single = [], [], [], False
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._input(node))
            elif node.op == "output":
                results = node.args[0]
                single = isinstance(results, Node)
                outputs = [self._argument(r) for r in ([results] if single else results)]
            elif node.op == "call_function":
                if node.target is not operator.getitem or not isinstance(node.args[0].meta.get("val"), tuple):
                    nodes.append(self._node(node))
        return {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.numbers,
            "sym_bool_values": {},
            "is_single_tensor_return": single,
            "custom_obj_values": {},
            "sym_float_values": {},
        }

    def _note(self, node: Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            self.tensors[node.name] = tensor_meta(value)
        elif isinstance(value, SymValue):
            self.numbers[node.name] = _size(value.expr, int(value))

    def _input(self, node: Node) -> dict[str, Any]:
        value = node.meta.get("val")
        if isinstance(value, (Tensor, SymValue)):
            self._note(node)
            return self._argument(node)
        return _constant(value)

    def _argument(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Node):
            if value.op == "get_attr":
                child = self.module.get_submodule(str(value.target))
                if isinstance(child, GraphModule):
                    return {"as_graph": {"name": value.target, "graph": _Writer(child).graph()}}
            if isinstance(value.meta.get("val"), SymValue):
                return {"as_sym_int": {"as_name": value.name}}
            return {"as_tensor": {"name": value.name}}
        if isinstance(value, (list, tuple)):
            return self._list(list(value))
        return {"as_none": True} if value is None else _plain(value)

    def _list(self, values: list[Any]) -> dict[str, Any]:
        nodes = [v for v in values if isinstance(v, Node)]
        tensors = [n for n in nodes if not isinstance(n.meta.get("val"), SymValue)]
        if tensors or any(v is None for v in values):
            if len(tensors) == len(values):
                return {"as_tensors": [{"name": v.name} for v in values]}
            made = [{"as_none": True} if v is None else {"as_tensor": {"name": v.name}} for v in values]
            return {"as_optional_tensors": made}
        if nodes:
            named = [{"as_name": v.name} if isinstance(v, Node) else {"as_int": int(v)} for v in values]
            return {"as_sym_ints": named}
        if all(isinstance(v, bool) for v in values) and values:
            return {"as_bools": values}
        if all(isinstance(v, int) for v in values):
            return {"as_ints": [int(v) for v in values]}
        if all(isinstance(v, (int, float)) for v in values):
            return {"as_floats": [_float(float(v)) for v in values]}
        if all(isinstance(v, str) for v in values):
            return {"as_strings": values}
        raise NotImplementedError(f"export.save: the list {values!r} is not saved")

    def _node(self, node: Node) -> dict[str, Any]:
        target = node.target
        single = None
        if isinstance(target, OpOverload):
            inputs = self._op_inputs(node, target)
            name = f"torch.ops.{target}"
        elif isinstance(target, OpOverloadPacket):
            name, single = f"torch.ops.{target}", not isinstance(node.meta.get("val"), tuple)
            inputs = [{"name": "", "arg": self._argument(a), "kind": 1} for a in node.args]
            inputs += [{"name": k, "arg": self._argument(a), "kind": 2} for k, a in node.kwargs.items()]
        elif getattr(target, "__module__", None) == "_operator" and target.__name__ in OPERATORS:
            name = f"_operator.{target.__name__}"
            inputs = [{"name": n, "arg": self._argument(a), "kind": 1} for n, a in zip("ab", node.args)]
        else:
            raise NotImplementedError(f"export.save: a call of {target!r} is not saved; expected ops and operators")
        return {
            "target": name,
            "inputs": inputs,
            "outputs": self._outputs(node),
            "metadata": _metadata(node),
            "is_hop_single_tensor_return": single,
            "name": node.name,
        }

    def _op_inputs(self, node: Node, target: OpOverload) -> list[dict[str, Any]]:
        schema = target._schema
        if schema is None:
            raise NotImplementedError(f"export.save: the arguments of {target} are not known")
        given = [{"name": a.name, "arg": self._argument(v), "kind": 1} for a, v in zip(schema.arguments, node.args)]
        return given + [{"name": k, "arg": self._argument(v), "kind": 2} for k, v in node.kwargs.items()]

    def _outputs(self, node: Node) -> list[dict[str, Any]]:
        value = node.meta.get("val")
        if isinstance(value, Tensor):
            self._note(node)
            return [{"as_tensor": {"name": node.name}}]
        if isinstance(value, SymValue):
            self._note(node)
            return [{"as_sym_int": {"as_name": node.name}}]
        if not isinstance(value, tuple):
            return []
        items = {u.args[1]: u for u in node.users if u.target is operator.getitem}
        named = []
        for i, part in enumerate(value):
            user = items.get(i)
            name = user.name if user is not None else f"{node.name}_unused_{i}"
            if isinstance(part, Tensor):
                self.tensors[name] = tensor_meta(part)
            named.append({"name": name})
        schema = node.target._schema if isinstance(node.target, OpOverload) else None
        if schema is not None and len(schema.returns) == 1 and schema.returns[0].endswith("[]"):
            return [{"as_tensors": named}]
        return [{"as_tensor": n} for n in named]


def _metadata(node: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    if trace := node.meta.get("stack_trace"):
        found["stack_trace"] = trace.strip()
    if stack := node.meta.get("nn_module_stack"):
        found["nn_module_stack"] = ";".join(f"{key},{path},{_class(kind)}" for key, (path, kind) in stack.items())
    if names := node.meta.get("torch_fn"):
        found["torch_fn"] = ";".join(names)
    return found


def _class(kind: Any) -> str:
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return name.replace("rustgrad.", "torch.", 1) if name.startswith("rustgrad.") else name
