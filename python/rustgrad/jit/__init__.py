"""`rustgrad.jit`: the decorators of TorchScript for programs that run eagerly.

`script` and `trace` return what they are given, which then runs as Python; nothing is compiled, so nothing can be saved
as TorchScript, and `load` refuses TorchScript files.
"""

from __future__ import annotations

import contextlib
import warnings
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
]

T = TypeVar("T")


class Error(Exception):
    """What code of TorchScript raises, by `raise` or `assert`. Its module is PyTorch's."""

    __module__ = "torch.jit"


class TracerWarning(Warning):
    """A warning about a trace; there are no traces. `ignore_lib_warnings` is there for programs that call it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silences warnings of this class from libraries."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class ScriptModule(Module):
    """The base class of scripted modules: a `Module`, whose methods run as Python. `script` returns no object of it."""


class ScriptFunction:
    """The class of scripted functions, of which there are no objects: `script` returns the function itself."""


class Attribute:
    """A value with the type that TorchScript would give it."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value, self.type = value, type


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """`obj` itself: a function, class or module runs as Python."""
    return obj


def script_method(fn: T) -> T:
    """`fn` itself."""
    return fn


def script_if_tracing(fn: T) -> T:
    """`fn` itself."""
    return fn


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`func` itself, after one call with `example_inputs`, so that wrong inputs show here.

    Unlike a trace it follows data-dependent branches in later calls.
    """
    example_inputs = kwargs.get("example_kwarg_inputs", example_inputs)
    if callable(func) and example_inputs is not None:
        from ..autograd.grad_mode import no_grad

        with no_grad():
            if isinstance_(example_inputs, dict):
                func(**example_inputs)
            else:
                func(*(example_inputs if isinstance_(example_inputs, (tuple, list)) else (example_inputs,)))
    return func


def trace_module(mod: T, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> T:
    """`mod` itself, after one call of each method named in `inputs`."""
    for name, given in inputs.items():
        trace(getattr(mod, name), given)
    return mod


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """`mod` itself. RuntimeError for a module in training mode."""
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """`mod` itself."""
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """No effect: nothing is compiled."""


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator that returns the function itself."""
    return drop if callable(drop) else _itself


def export(fn: T) -> T:
    """`fn` itself."""
    return fn


def unused(fn: T) -> T:
    """`fn` itself."""
    return fn


def _overload(func):
    """`func` itself: a signature for TorchScript's compiler."""
    return func


_overload_method = _overload
_script_if_tracing = script_if_tracing


def interface(obj: T) -> T:
    """`obj` itself."""
    return obj


def _itself(fn):
    return fn


def annotate(the_type: Any, the_value: T) -> T:
    """`the_value` itself."""
    return the_value


def is_scripting() -> bool:
    """False: code runs as Python."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


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


def _refuse(name):
    raise NotImplementedError(
        f"jit.{name}: there is no TorchScript here. Hint: save the state_dict with rustgrad.save, and build the module in Python."
    )


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """NotImplementedError: there is no TorchScript to save."""
    _refuse("save")


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
    """NotImplementedError: there is no TorchScript."""
    _refuse("export_opnames")


def _get_trace_graph(f: Any, args: Any = (), *options: Any, **kwargs: Any) -> Any:
    """NotImplementedError: calls are not recorded as graphs of TorchScript."""
    raise NotImplementedError(
        "jit._get_trace_graph: there are no graphs of TorchScript here. Hint: fx.symbolic_trace records a module,"
        " utils.flop_counter.FlopCounterMode counts its operations."
    )


# The feature of the language by this name would hide the submodule.
del annotations
__getattr__: Callable[[str], object] = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
