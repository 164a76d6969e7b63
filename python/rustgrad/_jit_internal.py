"""Private names of TorchScript that libraries import: decorators, which return what they are given, and questions about types."""

from __future__ import annotations

import types
import typing
import weakref
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin

from .futures import Future as Future
from .jit import Final as Final
from .jit import _overload as _overload
from .jit import _overload_method as _overload_method
from .jit import export as export
from .jit import ignore as ignore
from .jit import is_scripting as is_scripting
from .jit import unused as unused
from .jit.annotations import BroadcastingList1 as BroadcastingList1
from .jit.annotations import BroadcastingList2 as BroadcastingList2
from .jit.annotations import BroadcastingList3 as BroadcastingList3
from .jit.annotations import BroadcastingList4 as BroadcastingList4
from .jit.annotations import BroadcastingList5 as BroadcastingList5
from .jit.annotations import BroadcastingList6 as BroadcastingList6
from .jit.annotations import _BroadcastingList as BroadcastingListCls  # noqa: F401

__all__: list[str] = []


def _copy_to_script_wrapper(fn: Any) -> Any:
    """`fn` itself."""
    return fn


# The functions that `boolean_dispatch` has made, and their parts.
boolean_dispatched: weakref.WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = weakref.WeakKeyDictionary()


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None,
    func_name: str | None,
) -> Callable[..., Any]:
    """A function that calls one of two others, by an argument that is True or False."""

    def call(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    if if_true.__doc__ is not None and if_false.__doc__ is not None:
        raise RuntimeError("only one function can have a docstring")
    call.__doc__ = if_true.__doc__ or if_false.__doc__
    call.__name__ = func_name or call.__name__
    call.__module__ = module_name or call.__module__
    boolean_dispatched[call] = {
        "if_true": if_true,
        "if_false": if_false,
        "index": arg_index,
        "default": default,
        "arg_name": arg_name,
    }
    return call


class FunctionModifiers:
    """What TorchScript's compiler would do with a function."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is `tuple[...]`."""
    return get_origin(ann) is tuple


def is_list(ann: Any) -> bool:
    """Whether an annotation is `list[...]`."""
    return get_origin(ann) is list


def is_dict(ann: Any) -> bool:
    """Whether an annotation is `dict[...]`."""
    return get_origin(ann) is dict


def is_union(ann: Any) -> bool:
    """Whether an annotation is a union of types."""
    return get_origin(ann) in (Union, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Whether an annotation is a union of one type and None."""
    return is_union(ann) and len(get_args(ann)) == 2 and type(None) in get_args(ann)


def is_final(ann: Any) -> bool:
    """Whether an annotation is `Final[...]`."""
    return get_origin(ann) is typing.Final or ann is typing.Final


def get_callable_argument_names(fn: Callable[..., Any]) -> list[str]:
    """The names of the arguments that may be given by position; none for a function without a signature."""
    import inspect

    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
