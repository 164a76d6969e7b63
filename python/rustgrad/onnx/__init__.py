"""`rustgrad.onnx`: models as ONNX files, which other runtimes run.

`export` records what a model computes and translates it, op by op (`docs/decisions/onnx.md`). It needs the package `onnx`.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from typing import Any

from .._absent import absent as _absent
from . import errors
from .errors import OnnxExporterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._program import ONNXProgram

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "unregister_custom_op_symbolic",
]
_OPSETS = range(7, 21)
producer_name = "rustgrad"


class TensorProtoDataType(enum.IntEnum):
    """The element types of ONNX."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class TrainingMode(enum.IntEnum):
    """The mode in which a module is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """As what operators are exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """Whether the code is run by `export`."""
    runs = sys.modules.get("rustgrad._recording._runs")
    return runs is not None and runs.is_exporting("onnx")


def export(
    model: Any,
    args: Any = (),
    f: str | PathLike[str] | Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[Any]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """A model as an ONNX graph: what it computes for `args`, with its parameters.

    The model runs two times or more, under `no_grad`; what it writes to its buffers is undone.

    Args:
        model (Module): a module, a function of tensors, or an `ExportedProgram`, whose example and sizes that vary are taken.
        args (tuple): example arguments; tensors become inputs, anything else is fixed. A single tensor may stand for a tuple of one.
        f (str, optional): a path, or an object with `write`. Without it the program is only returned.
        kwargs (dict, optional): arguments by name.
        verbose (bool, optional): print the graph, and note for each node the line of the program (as its `doc_string`).
        input_names, output_names (list, optional): names in order; by default those of the parameters of `forward`, and of the ops.
        opset_version (int, optional): 13 to 23; 20 by default.
        dynamo (bool): with True the program is returned, and the model keeps its mode; with False, None is returned, and `training`
            says the mode. The way of exporting is the same.
        external_data (bool): parameters of more than a gigabyte go to a file beside `f`.
        dynamic_shapes (dict or tuple, optional): what varies, by argument: {"x": {0: "batch"}}, or `export.Dim` in the place of a name.
        custom_translation_table (dict, optional): {function of the program: translation}; see `docs/decisions/onnx.md`.
        verify (bool): compare with the model by onnxruntime.
        export_params (bool): write the parameters.
        keep_initializers_as_inputs (bool): make the parameters inputs too.
        dynamic_axes (dict, optional): {name of an input: {axis: name of the size}}, or a list of axes.
        training (TrainingMode): the mode of the model, with `dynamo=False`.
        report, optimize, profile, dump_exported_program, artifacts_dir, operator_export_type, do_constant_folding, custom_opsets,
            export_modules_as_functions, autograd_inlining: accepted; constants are always folded.

    Returns:
        ONNXProgram: the program if `dynamo`, otherwise None.

    Raises:
        OnnxExporterError: an op, or a size that varies, has no translation, or what the model does depends on the elements of its
            inputs; the error names the op and the line. Also where the package `onnx` is not installed.
        TypeError: an unknown option.
    """
    from . import _export

    settings = {
        "verbose": verbose,
        "input_names": input_names,
        "output_names": output_names,
        "opset_version": opset_version,
        "dynamic_shapes": dynamic_shapes,
        "dynamic_axes": dynamic_axes,
        "custom_translation_table": custom_translation_table,
        "custom_opsets": custom_opsets,
        "export_params": export_params,
        "keep_initializers_as_inputs": keep_initializers_as_inputs,
        "external_data": external_data,
    }
    with select_model_mode_for_export(model, _export.mode_of(model, training, dynamo)):
        program = _export.export_model(model, args, kwargs, settings)
        if verify:
            _export.verified(program, model, args, kwargs)
    if verbose:
        import onnx

        print(onnx.printer.to_text(program.model))
    if f is not None:
        _export.write(program, f, settings)
    return program if dynamo else None


class select_model_mode_for_export:
    """A block in which a module is in the mode of an export, and each of its parts is what it was after it.

    Args:
        model (Module): the module.
        mode (TrainingMode): EVAL, TRAINING or, to change nothing, PRESERVE.
    """

    def __init__(self, model: Any, mode: TrainingMode) -> None:
        self.model, self.mode = model, mode

    def __enter__(self) -> None:
        from ..nn.modules.module import Module

        self.before = []
        if self.mode != TrainingMode.PRESERVE and isinstance(self.model, Module):
            self.before = [(m, m.training) for m in self.model.modules()]
            self.model.train(self.mode == TrainingMode.TRAINING)

    def __exit__(self, *error: Any) -> None:
        for module, training in self.before:
            module.training = training


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Gives an op a translation, from an opset on: `symbolic_fn(g, *args)`, where `g.op("domain::Kind", *values, name_i=1)` adds a node.

    Args:
        symbolic_name (str): "namespace::op"; ops of `library` and of rustgrad itself ("aten::relu").
        symbolic_fn (Callable): takes the graph and the arguments of the call, and returns a value or several.
        opset_version (int): the first opset for which it holds.

    Raises:
        OnnxExporterError: a name of another form.
    """
    from . import _registered

    _registered.register(symbolic_name, symbolic_fn, opset_version)


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what `register_custom_op_symbolic` has done."""
    from . import _registered

    _registered.unregister(symbolic_name, opset_version)


def __getattr__(name: str) -> Any:
    if name == "ONNXProgram":
        from ._program import ONNXProgram

        return ONNXProgram
    # Libraries import the exporter's op sets to register theirs beside them: modules without names.
    if name.startswith("symbolic_opset") and name[14:].isdigit() and int(name[14:]) in _OPSETS:
        module = types.ModuleType(f"{__name__}.{name}", "An op set of the exporter, which is not here.")
        return sys.modules.setdefault(module.__name__, module)
    raise _absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
