"""`rustgrad.jit`: TorchScript's archives, which `load` runs and `save` writes, traces, and decorators for programs that run eagerly.

`script` returns what it is given, which then runs as Python; `trace` records a run as code of TorchScript.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from .._absent import getattr_of
from ..nn.modules.module import Module

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")


class Error(Exception):
    """What code of TorchScript raises, by `raise` or `assert`. Its module is PyTorch's."""

    __module__ = "torch.jit"


class TracerWarning(Warning):
    """A warning about a trace, which may hold for its inputs only. `ignore_lib_warnings` is there for programs that call it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silences warnings of this class from libraries."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class ScriptModule(Module):
    """The base class of traced and loaded modules, and of those that programs write in this style: their methods run as Python."""


class ScriptFunction:
    """The base class of traced functions: `script` returns the function itself."""


class Attribute:
    """A value with the type that TorchScript would give it."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value, self.type = value, type


_scripted: Any = weakref.WeakSet()
_scripted_classes: Any = weakref.WeakSet()


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """`obj` itself: a function, class or module runs as Python.

    A module with its submodules, or a function, has `save`, `code` and `graph` afterwards: these translate its Python to
    TorchScript, and raise a RuntimeError that names the line where that is not possible.
    """
    if isinstance_(obj, Module):
        for module in obj.modules():
            _scripted.add(module)
    elif isinstance_(obj, types.FunctionType):
        from ._lazy import later

        for name, value in {"save": functools.partial(save, obj), **later(obj)}.items():
            vars(obj).setdefault(name, value)
    elif isinstance_(obj, type):
        _scripted_classes.add(obj)
    return obj


def _is_scripted(obj: Any) -> bool:
    """Whether a module was given to `script`."""
    return isinstance_(obj, Module) and obj in _scripted


def _of_scripted(module: Any, name: str) -> Any:
    """What a module that was given to `script` has besides its own attributes."""
    if name == "original_name":
        return type(module).__name__
    if name in ("save", "save_to_buffer"):
        return functools.partial(save if name == "save" else _to_bytes, module)
    return getattr(_program(module), name)


def _program(m: Any) -> Any:
    """A module or function as code of TorchScript."""
    from ._script import LoadedFunction, RecursiveScriptModule

    if isinstance_(m, (LoadedFunction, RecursiveScriptModule)):
        return m
    from ._translate import translated_function, translated_module

    if isinstance_(m, ScriptModule) or _is_scripted(m):
        return translated_module(m)
    if isinstance_(m, types.FunctionType):
        return translated_function(m)
    raise AttributeError(
        f"'{type(m).__name__}' object has no attribute 'save'. Hint: give it to jit.script or jit.trace first."
    )


def _to_bytes(m: Any, *args: Any, _extra_files: Any = None, **kwargs: Any) -> bytes:
    """The bytes of an archive."""
    from ._save import to_bytes

    return to_bytes(_program(m), _extra_files)


def script_method(fn: T) -> T:
    """`fn` itself."""
    return fn


def script_if_tracing(fn: T) -> T:
    """`fn` itself."""
    return fn


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """A module or function that runs what one call of `func` computed, and that `save` can write.

    Branches and loops of Python are recorded as they ran; numbers read out of tensors are constants; sizes of tensors are
    computed again. Parameters and buffers of a module are shared with it.

    Args:
        func (Module or callable): what is called.
        example_inputs (tuple, Tensor or dict): the arguments: tensors, and tuples, lists and dicts of tensors.
        check_trace (bool): the recording is run once and its results compared.
        strict (bool): results that are lists or dicts are errors.
        example_kwarg_inputs (dict): the arguments by name.

    Returns:
        A `TopLevelTracedModule`, or a `ScriptFunction`. Where a call has no form in TorchScript, a TracerWarning says why, and
        `func` itself is returned.

    Raises:
        RuntimeError: an argument or a result is no tensor, or a tensor with gradients comes from outside.
    """
    if isinstance_(func, (ScriptModule, ScriptFunction)):
        return func
    args, kwargs = _example(example_inputs, example_kwarg_inputs)
    if isinstance_(func, Module):
        return trace_module(func, {"forward": (args, kwargs)}, check_trace=check_trace, strict=strict)
    owner = getattr(func, "__self__", None)
    if isinstance_(owner, Module) and getattr(func, "__name__", None) == "forward":
        return trace_module(owner, {"forward": (args, kwargs)}, check_trace=check_trace, strict=strict)
    from ._trace import traced_function

    return _recorded(lambda: traced_function(func, args, kwargs, strict, check_trace), func)


def _example(inputs: Any, named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if named is not None:
        return (), dict(named)
    if isinstance_(inputs, dict):
        return (), inputs
    if inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    return (tuple(inputs) if isinstance_(inputs, (tuple, list)) else (inputs,)), {}


def _recorded(record: Callable[[], Any], func: Any) -> Any:
    """What `record` makes, or `func` with a warning where the run cannot be recorded."""
    from ._record import CannotRecord

    try:
        return record()
    except CannotRecord as error:
        if "requires grad" in str(error):
            raise RuntimeError(str(error)) from None
        warnings.warn(f"jit.trace: {error}; the function is returned as it is", TracerWarning, stacklevel=4)
        return func


def trace_module(
    mod: Any,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """`trace` of several methods of a module: `inputs` has the arguments of each by name."""
    from ._trace import traced_module

    if not isinstance_(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    calls = {}
    for name, given in inputs.items():
        is_pair = (
            isinstance_(given, tuple)
            and len(given) == 2
            and isinstance_(given[1], dict)
            and isinstance_(given[0], tuple)
        )
        calls[name] = given if is_pair else _example(given, given if example_inputs_is_kwarg else None)
    return _recorded(lambda: traced_module(mod, calls, strict, check_trace), mod)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """A scripted module as it is for inference: a copy whose parameters have no gradients. Another module is returned itself.

    RuntimeError for a module in training mode.
    """
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return copy.deepcopy(mod).requires_grad_(False) if isinstance_(mod, ScriptModule) else mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """`freeze` of a scripted module in eval mode; another one is returned itself."""
    return freeze(mod.eval()) if isinstance_(mod, ScriptModule) else mod


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A `Future` of the call, which runs at once."""
    from ..futures import Future

    made: Any = Future()
    try:
        made.set_result(func(*args, **kwargs))
    except Exception as error:
        made.set_exception(error)
    return made


def wait(future: Any) -> Any:
    """The value of what `fork` returned; the error of its call is raised."""
    return future.wait()


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """No effect: nothing is compiled."""


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that returns the function itself. Code that calls it cannot be saved, with `drop` only where the call is not reached."""
    if callable(drop):
        return _marked(drop, "ignore (leave as a call to Python, cannot be torch.jit.save'd)")
    return unused if drop else ignore


def export(fn: T) -> T:
    """`fn` itself, which is saved with its module even if nothing calls it."""
    return _marked(fn, "export (compile this function even if nothing calls it)")


def unused(fn: T) -> T:
    """`fn` itself; in code that is saved, calling it is an error."""
    return _marked(fn, "unused (ignored and replaced with raising of an exception)")


def _marked(fn, modifier):
    """A function with PyTorch's mark of what becomes of it in code."""
    with contextlib.suppress(AttributeError, TypeError):
        fn._torchscript_modifier = modifier
    return fn


def _overload(func):
    """`func` itself: a signature for TorchScript's compiler."""
    return func


_overload_method = _overload
_script_if_tracing = script_if_tracing


def interface(obj: T) -> T:
    """`obj` itself."""
    return obj


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value` itself."""
    return the_value


def is_scripting() -> bool:
    """False: code runs as Python."""
    return False


def is_tracing() -> bool:
    """Whether this thread runs a function for `trace`."""
    made = sys.modules.get(f"{__name__}._trace")
    return made is not None and made.here.running


isinstance_ = isinstance


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Python's `isinstance`, which takes generic classes by their origin: `List[int]` is `list`."""
    types = target_type if isinstance_(target_type, (tuple, list)) else (target_type,)
    return isinstance_(obj, tuple(getattr(t, "__origin__", None) or t for t in types))


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block without effect."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block without effect."""
    yield


class strict_fusion:
    """A block without effect."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Accepted without effect; returns an empty strategy."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted without effect."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Writes a module or function as a TorchScript archive, which PyTorch's `torch.jit.load` reads.

    Args:
        m: what `trace` or `load` returned, or was given to `script`.
        f (path or binary file): a file needs only `write`.
        _extra_files (dict): more files of the archive, name -> text or bytes.

    Raises:
        AttributeError: `m` was neither traced nor scripted.
        RuntimeError: its Python has no form in TorchScript; the message names the line.
    """
    from ._save import save_archive

    save_archive(_program(m), f, _extra_files)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """The module of a TorchScript archive, such as PyTorch's `torch.jit.save` writes.

    What an archive's code can do is what TorchScript has: its names are ops, its own classes and functions. Nothing of
    Python is reached from it, so an archive need not be trusted, beyond the time and memory that it may ask for.

    Args:
        f (path or binary file): the archive.
        map_location (device or str): where tensors are placed. Default: as saved.
        _extra_files (dict): its names are files of the archive, whose bytes are filled in.

    Raises:
        ValueError: there is no such file.
        serialization.CheckpointError: the file is no archive, is damaged, or its code is not TorchScript.
    """
    from ._load import load_archive

    return load_archive(f, map_location, _extra_files)


def export_opnames(m: Any) -> list[str]:
    """The names of the ops that the code of a module calls, sorted."""
    from ._graph import opnames

    return opnames(m)


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """(the graph of a call, what it returned): parameters and buffers are inputs, values have shapes, nodes scopes.

    RuntimeError where the call has no form in TorchScript.
    """
    from ._trace_graph import trace_graph

    args = tuple(args) if isinstance_(args, (tuple, list)) else (args,)
    found = trace_graph(f, args, kwargs or {}, strict)
    return (*found, (args, kwargs or {})) if return_inputs or _return_inputs_states else found


# The feature of the language by this name would hide the submodule.
del annotations
__getattr__: Callable[[str], object] = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
