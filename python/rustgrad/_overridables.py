"""Which functions of the public namespaces a class can override by `__torch_function__`: what `overrides` lists.

Imported by the first question.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from ._C import Tensor, ops

__all__ = ["ignored_functions", "names_of_functions", "overridable_functions", "testing_overrides"]

# Ops without a tensor among their arguments: only a mode sees their calls.
_FACTORIES = """arange as_strided bartlett_window blackman_window empty empty_permuted empty_strided eye fill full hamming_window
    hann_window kaiser_window linspace logspace normal ones rand randint randn randperm range scalar_tensor tril_indices
    triu_indices vander zeros fftfreq rfftfreq"""
# Attributes of the class that are asked while a tensor is made, changed or looked at by the interpreter.
_OF_CLASS = """__class__ __delattr__ __delitem__ __dir__ __getattribute__ __getstate__ __hash__ __init__ __init_subclass__ __iter__
    __new__ __reduce__ __setattr__ __sizeof__ __str__ __subclasshook__ __torch_function__ _make_subclass as_subclass eig lstsq
    new new_empty new_empty_strided new_full new_ones new_tensor new_zeros solve symeig stride to_sparse_bsc to_sparse_bsr
    to_sparse_coo to_sparse_csc to_sparse_csr unflatten"""
_Op = type(ops["add"])
# By their classes' module: a method that a program replaced is a function, as are those that offer no call.
_METHODS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    *{type(method) for method in vars(Tensor).values() if type(method).__module__ == _Op.__module__},
)


def _namespaces() -> list[tuple[str, Any, list[str]]]:
    import rustgrad as torch

    from . import fft, functional, linalg, special
    from .nn import functional as F
    from .nn import init

    public = lambda space: [name for name in dir(space) if name[0].islower() and name[-1] != "_"]  # noqa: E731
    return [
        # Without modules, which are not loaded for this.
        ("torch", torch, [n for n in public(torch) if n not in torch._SUBMODULES]),
        ("torch.functional", functional, list(functional.__all__)),
        ("torch.nn.functional", F, public(F)),
        ("torch.nn.init", init, [name for name in dir(init) if name[0].islower()]),
        ("torch.Tensor", Tensor, [name for name in dir(Tensor) if name[:1] != "_" or name[:2] == "__"]),
        ("torch.linalg", linalg, public(linalg)),
        ("torch.fft", fft, public(fft)),
        ("torch.special", special, public(special)),
    ]


def _is_overridable(function: Any) -> bool:
    """Whether the call of a function of a module is offered to the classes of its arguments."""
    if isinstance(function, _Op):
        return function.__name__.removeprefix("fft_") not in _FACTORIES.split()
    return isinstance(function, types.FunctionType) and getattr(function, "_is_overridable", False)


@functools.cache
def _found() -> tuple[dict[Any, list[Callable[..., Any]]], set[Callable[..., Any]], dict[Callable[..., Any], str]]:
    """The overridable functions of each namespace, those that are not, and the names of all."""
    overridable: dict[Any, list[Callable[..., Any]]] = {}
    ignored: set[Callable[..., Any]] = set()
    index: dict[Callable[..., Any], str] = {}
    for where, space, names in _namespaces():
        for name in names:
            value = getattr(space, name)
            if space is Tensor and isinstance(value, types.GetSetDescriptorType):
                index[value.__get__] = f"{where}.{name}.__get__"
                index[value.__set__] = f"{where}.{name}.__set__"
                overridable.setdefault(value, []).append(value.__get__)
                continue
            if not callable(value) or isinstance(value, (type, types.ModuleType)):
                continue
            taken = _of_class(name, value) if space is Tensor else _is_overridable(value)
            index.setdefault(value, f"{where}.{name}")
            if taken:
                overridable.setdefault(space, []).append(value)
            else:
                ignored.add(value)
    return overridable, ignored, index


def _of_class(name: str, value: Any) -> bool:
    return name not in _OF_CLASS.split() and isinstance(value, _METHODS)


def overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Functions that can be overridden, by namespace."""
    return {space: list(functions) for space, functions in _found()[0].items()}


def ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that no class can override."""
    return set(_found()[1])


def names_of_functions() -> dict[Callable[..., Any], str]:
    """The names under which public functions are found."""
    return _found()[2]


@functools.cache
def _answers() -> dict[Callable[..., Any], Callable[..., Any]]:
    return {f: _answering(f) for functions in _found()[0].values() for f in functions}


def testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one with its parameters that returns -1."""
    return dict(_answers())


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    override.__signature__ = signature  # type: ignore[attr-defined]
    return override
