"""`export`: records a model, translates it, and writes the file."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .._base import Tensor
from .._recording._errors import RecordingError
from .._recording._merge import Merged
from .._recording._record import Recorder
from .._recording._runs import Inputs, left_out, runs, tensors_of
from .._recording._sizes import SymInt
from .._recording._trace import Trace
from ..export.exported_program import ExportedProgram
from ..version import __version__
from ._build import Builder, translation
from ._dynamic import Dynamic
from ._graph import TYPES, Graph
from ._program import ONNXProgram, elements, require_onnx
from ._registered import registered
from .errors import OnnxExporterError, OnnxExporterWarning

__all__ = ["DEFAULT_OPSET", "OPSETS", "export_model"]

OPSETS = range(13, 24)
DEFAULT_OPSET = 20
# The version of the file format that goes with the first opset of each.
_IR = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}


def export_model(model: Any, args: Any, kwargs: dict[str, Any] | None, options: dict[str, Any]) -> ONNXProgram:
    """The exported model. `options` are those of `onnx.export`."""
    onnx = require_onnx()
    opset = DEFAULT_OPSET if options["opset_version"] is None else int(options["opset_version"])
    if opset not in OPSETS:
        raise OnnxExporterError(
            f"onnx.export: Unsupported ONNX opset version: {opset}; expected {OPSETS[0]} to {OPSETS[-1]}"
        )
    if isinstance(model, ExportedProgram):
        model, args, kwargs, options = _of_program(model, args, kwargs, options)
    args, kwargs = _arguments(args, kwargs)
    custom = _custom(options, opset)
    inputs = Inputs(model, args, kwargs, _recorder(custom))
    parameters = _parameters(model)
    names = _input_names(inputs, args, kwargs, parameters, options["input_names"])
    dynamic = Dynamic(names, inputs.tensors)
    if options["dynamic_shapes"] is not None:
        dynamic.from_shapes(options["dynamic_shapes"], args, kwargs, parameters)
    if options["dynamic_axes"]:
        dynamic.from_axes(options["dynamic_axes"])
    try:
        merged = _recorded(inputs, dynamic)
    except RecordingError as error:
        raise OnnxExporterError(f"onnx.export: {error}") from error.__cause__
    if not merged.trace.outputs:
        raise OnnxExporterError("onnx.export: the model returns no tensor")
    if left := left_out(merged.trace.result):
        warnings.warn(
            f"onnx.export: results of type {', '.join(left)} are left out; outputs are tensors",
            OnnxExporterWarning,
            stacklevel=3,
        )
    builder = Builder(merged, opset, _tensor_names(model), custom)
    for number, name in zip(merged.trace.inputs, names):
        builder.input(number, name)
    asked = _output_names(builder, names, len(merged.trace.outputs), options["output_names"])
    builder.build()
    outputs = _outputs(builder, merged.trace.outputs, asked)
    dynamic.check_outputs([name for name, _ in outputs])
    proto = _model(onnx, builder, names, outputs, dynamic, opset, options)
    return ONNXProgram(proto, inputs.tensors, lambda a, k: Inputs(model, a, k, _recorder(custom)).tensors)


def _of_program(program: ExportedProgram, args: Any, kwargs: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """The module of an exported program, its example where no other is given, and its sizes that vary."""
    if not args and not kwargs and program.example_inputs is not None:
        args, kwargs = program.example_inputs
    if options["dynamic_shapes"] is None and not options["dynamic_axes"]:
        options = {**options, "dynamic_shapes": _program_shapes(program)}
    return program.module(check_guards=False), args, kwargs, options


def _program_shapes(program: ExportedProgram) -> Any:
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    found: list[Any] = []
    for name in program.graph_signature.user_inputs:
        value = values.get(name) if isinstance(name, str) else None
        sizes = getattr(value, "_sizes", ())
        found.append({i: repr(n) for i, n in enumerate(sizes) if not isinstance(n, int)})
    if not any(found):
        return None
    args, kwargs = program.call_spec.in_spec.unflatten(found)
    return (*args, *kwargs.values())


def _recorder(custom: dict[Any, Any]) -> Callable[[bool], Recorder]:
    known = lambda key, function: translation(key) is not None or key in custom or function in custom  # noqa: E731
    return lambda sized: Recorder(known, sized)


def _recorded(inputs: Inputs, dynamic: Dynamic) -> Merged:
    """The recording of the model, compared with others of it."""
    merged = _compared(inputs, dynamic, 1)
    if merged.fitted:
        # A formula was found that gives a size in these runs: others have to agree.
        merged = _compared(inputs, dynamic, 2)
    merged.warn("onnx.export")
    return merged


def _compared(inputs: Inputs, dynamic: Dynamic, sets: int) -> Merged:
    traces = runs(inputs, dynamic.inputs, dynamic.bounds, sets)
    ones = {name for t, axes in zip(inputs.tensors, dynamic.inputs) for i, name in axes.items() if t.shape[i] == 1}
    try:
        return Merged(traces, _symbols(traces[0], dynamic))
    except RecordingError:
        if not ones:
            # What a model keeps for later calls (a table, a mask) is there the second time.
            traces = runs(inputs, dynamic.inputs, dynamic.bounds, sets)
            return Merged(traces, _symbols(traces[0], dynamic))
    merged = Merged(traces[1:], _symbols(traces[1], dynamic))
    warnings.warn(
        f"onnx.export: the model ran other ops in the example, where {', '.join(sorted(ones))} is 1, than for larger sizes; the "
        "exported model is that for larger sizes",
        OnnxExporterWarning,
        stacklevel=5,
    )
    return merged


def _symbols(trace: Trace, dynamic: Dynamic) -> dict[str, tuple[int, int]]:
    """The sizes that vary by name, each with the input and the dimension where it is first found."""
    symbols: dict[str, tuple[int, int]] = {}
    for number, axes in zip(trace.inputs, dynamic.inputs):
        for axis, name in axes.items():
            symbols.setdefault(name, (number, axis))
    return symbols


def _arguments(args: Any, kwargs: dict[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if kwargs is None and args and isinstance(args[-1], dict):
        # PyTorch's older form: a dict at the end holds what is given by name.
        return args[:-1], dict(args[-1])
    return args, dict(kwargs or {})


def _parameters(model: Any) -> list[str]:
    function = model.forward if hasattr(model, "forward") else model
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _input_names(
    inputs: Inputs, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str], asked: Any
) -> list[str]:
    """Names of the inputs: those asked for, then those of the parameters of `forward`."""
    found: list[str] = []

    def walk(value: Any, name: str) -> None:
        if isinstance(value, Tensor):
            found.append(name)
        elif isinstance(value, Mapping):
            for key, v in value.items():
                walk(v, f"{name}_{key}")
        elif isinstance(value, (list, tuple)):
            for i, v in enumerate(value):
                walk(v, f"{name}_{i}")

    for i, value in enumerate(args):
        walk(value, parameters[i] if i < len(parameters) else f"args_{i}")
    for name, value in kwargs.items():
        walk(value, name)
    if len(found) != len(inputs.tensors):
        found = [f"input_{i}" for i in range(len(inputs.tensors))]
    asked = list(asked or [])
    if len(asked) > len(found):
        raise OnnxExporterError(f"onnx.export: {len(asked)} input_names for {len(found)} inputs")
    names = asked + found[len(asked) :]
    if len(set(names)) != len(names):
        raise OnnxExporterError(f"onnx.export: the names of the inputs are not distinct: {names}")
    return names


def _tensor_names(model: Any) -> dict[int, str]:
    """The names of parameters and buffers, as in `state_dict()`."""
    if not hasattr(model, "named_parameters"):
        owner = getattr(model, "__self__", None)
        if not hasattr(owner, "named_parameters"):
            return {}
        model = owner
    names: dict[int, str] = {}
    for name, t in (*model.named_parameters(), *model.named_buffers()):
        names.setdefault(id(t), name)
    return names


def _custom(options: dict[str, Any], opset: int) -> dict[Any, Any]:
    found = dict(registered(opset))
    found.update(options["custom_translation_table"] or {})
    return found


def _outputs(builder: Builder, numbers: list[int], asked: list[str]) -> list[tuple[str, int]]:
    """Names the results: that of a node has the name asked for; an input, a constant, or what is a result already is copied."""
    g = builder.graph
    made = {name for node in g.nodes for name in node[2]}
    renamed: dict[str, str] = {}
    outputs: list[tuple[str, int]] = []
    for i, number in enumerate(numbers):
        inner = builder.val(number).name
        if inner in made and inner not in renamed:
            renamed[inner] = asked[i] if i < len(asked) else inner
            outputs.append((renamed[inner], number))
        else:
            name = asked[i] if i < len(asked) else g.fresh("output")
            g.nodes.append(("Identity", [inner], [name], {}, "", ""))
            outputs.append((name, number))
    for _, inputs, results, *_ in g.nodes:
        inputs[:] = [renamed.get(n, n) for n in inputs]
        results[:] = [renamed.get(n, n) for n in results]
    return outputs


def _output_names(builder: Builder, inputs: list[str], count: int, asked: Any) -> list[str]:
    """The names that are asked for, kept from other values."""
    names = list(asked or [])
    if len(names) > count:
        raise OnnxExporterError(f"onnx.export: {len(names)} output_names for {count} outputs")
    used = [*inputs, *builder.names.values()]
    if len(set(names)) != len(names) or any(n in used for n in names):
        raise OnnxExporterError(
            f"onnx.export: the output_names {names} are not distinct, or are names of inputs or parameters"
        )
    builder.graph.taken.update(names)
    return names


def _used(g: Graph, outputs: list[str]) -> list[Any]:
    """The nodes that the outputs need, in order."""
    needed = set(outputs)
    kept = []
    for node in reversed(g.nodes):
        if any(n in needed for n in node[2]):
            needed.update(node[1])
            kept.append(node)
    return kept[::-1]


def _info(onnx: Any, name: str, kind: Any, shape: list[Any]) -> Any:
    return onnx.helper.make_tensor_value_info(name, TYPES[kind], shape)


def _model(
    onnx: Any,
    builder: Builder,
    names: list[str],
    outputs: list[tuple[str, int]],
    dynamic: Dynamic,
    opset: int,
    options: dict[str, Any],
) -> Any:
    """The `ModelProto`."""
    g, merged = builder.graph, builder.merged
    kept = _used(g, [name for name, _ in outputs])
    used = {n for node in kept for n in node[1]}
    nodes, domains = [], {"": opset}
    for i, (kind, inputs, results, attributes, domain, where) in enumerate(kept):
        node = onnx.helper.make_node(kind, inputs, results, name=f"{kind}_{i}", domain=domain, **attributes)
        if options["verbose"]:
            node.doc_string = where
        nodes.append(node)
        if domain:
            domains[domain] = int((options["custom_opsets"] or {}).get(domain, 1))
    inputs = []
    for number, name, axes in zip(merged.trace.inputs, names, dynamic.inputs):
        value = merged.trace.values[number]
        inputs.append(_info(onnx, name, value.dtype, [axes.get(i, n) for i, n in enumerate(value.shape)]))
    results = []
    for name, number in outputs:
        asked = dynamic.outputs.get(name, {})
        shape = []
        for axis, n in enumerate(merged.shapes[number]):
            known = merged.name_of(number, axis) if isinstance(n, SymInt) else None
            shape.append(int(n) if not isinstance(n, SymInt) else asked.get(axis) or known or f"{name}_dim_{axis}")
        results.append(_info(onnx, name, merged.trace.values[number].dtype, shape))
    graph = onnx.helper.make_graph(nodes, "main_graph", inputs, results)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in domains.items()]
    model = onnx.helper.make_model(
        graph, producer_name="rustgrad", producer_version=__version__, opset_imports=imports, ir_version=_IR[opset]
    )
    for name, t in g.initializers.items():
        if name in used:
            # In the place where it stays: a large model is not copied.
            model.graph.initializer.add(name=name, data_type=TYPES[t.dtype], dims=list(t.shape), raw_data=elements(t))
    return model


def mode_of(model: Any, training: Any, dynamo: bool) -> Any:
    """The `TrainingMode` in which a model runs; a warning where it is left in training."""
    from . import TrainingMode

    mode = TrainingMode(int(training))
    if mode is TrainingMode.EVAL and dynamo:
        if getattr(model, "training", False):
            warnings.warn(
                "onnx.export: Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead "
                "to different behavior during inference. Calling model.eval() before export is recommended.",
                OnnxExporterWarning,
                stacklevel=3,
            )
        return TrainingMode.PRESERVE
    return mode


def verified(program: ONNXProgram, model: Any, args: Any, kwargs: dict[str, Any] | None) -> None:
    """Compares the results of onnxruntime with those of the model. OnnxExporterError where they differ."""
    from .. import allclose, no_grad

    args, kwargs = _arguments(args, kwargs)
    with no_grad():
        expected = tensors_of(model(*args, **kwargs))
    for info, want, got in zip(program.model.graph.output, expected, program(*args, **kwargs)):
        exact = not want.is_floating_point()
        if want.shape != got.shape or not allclose(
            want.double(), got.double(), 1e-3, 0 if exact else 1e-4, equal_nan=True
        ):
            raise OnnxExporterError(f"onnx.export: onnxruntime computes another '{info.name}' than the model")


def write(program: ONNXProgram, f: Any, options: dict[str, Any]) -> None:
    """Writes the model as `onnx.export` was asked to."""
    large = sum(len(t.raw_data) for t in program.model.graph.initializer) > 1 << 30
    program.save(
        f,
        include_initializers=options["export_params"],
        keep_initializers_as_inputs=options["keep_initializers_as_inputs"],
        external_data=(large or None) if options["external_data"] and not hasattr(f, "write") else None,
    )
