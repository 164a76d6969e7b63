"""`rustgrad.export`: programs as graphs of ATen ops, with the sizes that vary, and the files of them.

`export` records runs of a module and compares them (`docs/decisions/export.md`).
"""

from __future__ import annotations

import importlib
from typing import Any

from .._absent import getattr_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
    from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
    from .graph_signature import ExportBackwardSignature, ExportGraphSignature
    from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "export_for_training",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]
DEFAULT_PICKLE_PROTOCOL = 2
_PLACES = {
    **dict.fromkeys(("AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "dims"), "dynamic_shapes"),
    **dict.fromkeys(("ExportBackwardSignature", "ExportGraphSignature"), "graph_signature"),
    **dict.fromkeys(
        ("ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"), "exported_program"
    ),
    **dict.fromkeys(("FlatArgsAdapter", "UnflattenedModule"), "unflatten"),
    "CustomDecompTable": "_decompositions",
}


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """A module as a graph of ATen ops.

    It runs several times with other elements, and other sizes where some vary; what it writes is undone.

    Args:
        mod (Module): the module, in the mode in which it is exported.
        args (tuple): example arguments; containers of tensors, and values that are the same in each call.
        kwargs (dict, optional): arguments by name.
        dynamic_shapes (dict or tuple, optional): which sizes vary, in containers like those of the arguments: {"x": {0: Dim("batch")}},
            `Dim.AUTO` or `Dim.DYNAMIC` in the place of a name; `ShapesCollection` or `AdditionalInputs`.
        strict (bool): accepted; the way of exporting is the same.
        preserve_module_call_signature (tuple): paths of modules that `module_call_graph` has to list.
        prefer_deferred_runtime_asserts_over_guards (bool): accepted.

    Returns:
        ExportedProgram: `module()` of it computes the same.

    Raises:
        ValueError: `mod` is no module.
        UserError: (`torch._dynamo.exc`, a RuntimeError) the arguments or `dynamic_shapes` have another form, a size that has to vary
            cannot, or what the program does depends on how often or with what it runs; the text names the line.
        GuardOnDataDependentSymNode: (`torch.fx.experimental.symbolic_shapes`, a RuntimeError) the program reads elements that depend
            on its inputs, as in `if x.sum() > 0`.
    """
    from ._exporter import export_module

    return export_module(mod, args, kwargs, dynamic_shapes, tuple(preserve_module_call_signature))


def export_for_training(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    """`export`, which PyTorch had in two forms."""
    return export(mod, args, kwargs, **options)


def draft_export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """`export` with sizes that cannot vary left static: their names in `dynamic_shapes` become `Dim.AUTO` where they are refused.

    Raises:
        UserError, GuardOnDataDependentSymNode: as `export`, for what is not about sizes that cannot vary.
    """
    from .._dynamo.exc import UserError
    from ._exporter import export_module
    from .dynamic_shapes import relaxed

    try:
        return export_module(mod, args, kwargs, dynamic_shapes, tuple(preserve_module_call_signature))
    except UserError as error:
        if "Constraints violated" not in str(error):
            raise
        shapes = relaxed(mod, args, kwargs or {}, dynamic_shapes)
        return export_module(mod, args, kwargs, shapes, tuple(preserve_module_call_signature))


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
) -> None:
    """Writes a program as PyTorch's `.pt2` archive.

    Args:
        ep (ExportedProgram): the program.
        f (str or file): a path, or an object with `write`.
        extra_files (dict, optional): {name: text or bytes} that are stored along.
        opset_version (dict, optional): {namespace: version} of ops of the program's own.
        pickle_protocol (int): accepted.

    Raises:
        TypeError: `ep` is no ExportedProgram.
        NotImplementedError: a class of the arguments or results has no name for files.
    """
    from ._archive import save_program

    save_program(ep, f, extra_files, opset_version)


def load(
    f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None
) -> ExportedProgram:
    """The program of a `.pt2` archive, of PyTorch or of `save`. No code of the file runs.

    Args:
        f (str or file): a path, or an object with `read`.
        extra_files (dict, optional): its values become what is stored under its names.
        expected_opset_version (dict, optional): accepted.

    Raises:
        RuntimeError: no such archive, or a version that is not known.
        NotImplementedError: an op that is not here; the text names it.
    """
    from ._archive import load_program

    return load_program(f, extra_files)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Registers a dataclass as a tree of its fields."""
    from ..utils import _pytree

    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


_absent = getattr_of(__name__)


def __getattr__(name: str) -> Any:
    if name == "unflatten":
        return importlib.import_module(".unflatten", __name__).unflatten
    if name in _PLACES:
        return getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
    return _absent(name)


def __dir__() -> list[str]:
    return __all__
