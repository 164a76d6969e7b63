"""Types of samples at run time: which type a pipe declares, whether one type is within another, and a value of it.

A pipe declares a type as the argument of its base class: `class Pairs(IterDataPipe[tuple[int, str]])`. Nothing is checked
unless a method is decorated with `argument_validation` or `runtime_validation`.
"""

from __future__ import annotations

import collections.abc
import types
from typing import Any, TypeVar, Union, get_args, get_origin

__all__ = ["datapipe_type", "issubinstance", "issubtype"]

# Types of which the arguments are looked at in a value.
_CONTAINERS = (list, set, frozenset, collections.abc.Sequence)


def _alternatives(kind):
    """The types of a union, or those that a type variable may be; None for any type."""
    if kind is Any:
        return None
    if isinstance(kind, TypeVar):
        if kind.__constraints__:
            return _joined(kind.__constraints__)
        return _alternatives(kind.__bound__) if kind.__bound__ is not None else None
    if get_origin(kind) in (Union, types.UnionType):
        return _joined(get_args(kind))
    return [type(None) if kind is None else kind]


def _joined(kinds):
    parts = [_alternatives(kind) for kind in kinds]
    return None if None in parts else [kind for part in parts for kind in part]


def _class_of(kind):
    return get_origin(kind) or getattr(kind, "__origin__", kind)


def _is_subclass(left, right):
    # A bool is an int for Python, but no sample of an int.
    if left is bool or right is bool:
        return left is right
    try:
        return issubclass(left, right)
    except TypeError:
        return left == right


def issubtype(left: Any, right: Any, recursive: bool = True) -> bool:
    """Whether every value of the type `left` is one of `right`.

    Args:
        left, right: types, also unions, type variables and types with arguments.
        recursive (bool): look at the arguments of types too.
    """
    rights = _alternatives(right)
    if rights is None:
        return True
    lefts = _alternatives(left)
    if lefts is None:
        return False
    return all(any(_is_within(one, other, recursive) for other in rights) for one in lefts)


def _is_within(left, right, recursive):
    if not _is_subclass(_class_of(left), _class_of(right)):
        return False
    ours, theirs = get_args(left), get_args(right)
    if not recursive or not theirs:
        return True
    if not ours:
        return all(issubtype(Any, kind) for kind in theirs if kind is not Ellipsis)
    if _class_of(right) is tuple:
        if Ellipsis in theirs:
            return all(issubtype(kind, theirs[0]) for kind in ours if kind is not Ellipsis)
        if Ellipsis in ours:
            return False
    return len(ours) == len(theirs) and all(map(issubtype, ours, theirs))


def issubinstance(data: Any, data_type: Any) -> bool:
    """Whether a value is of a type; the elements of lists, tuples, sets and dicts are looked at."""
    kinds = _alternatives(data_type)
    return kinds is None or any(_is_instance(data, kind) for kind in kinds)


def _is_instance(data, kind):
    origin, args = _class_of(kind), get_args(kind)
    if not _is_subclass(type(data), origin):
        return False
    if not args:
        return True
    if origin is tuple:
        if Ellipsis in args:
            return all(issubinstance(value, args[0]) for value in data)
        return len(args) == len(data) and all(map(issubinstance, data, args))
    if origin in _CONTAINERS:
        return all(issubinstance(value, args[0]) for value in data)
    if isinstance(data, dict):
        return all(issubinstance(key, args[0]) and issubinstance(value, args[1]) for key, value in data.items())
    return True


def datapipe_type(datapipe: Any) -> Any:
    """The type that a pipe, a class of pipes or such a class with an argument declares for its samples; Any without one."""
    from .datapipe import IterDataPipe, MapDataPipe

    origin = _class_of(datapipe)
    cls = origin if isinstance(origin, type) else type(datapipe)
    args = get_args(datapipe)
    if cls in (IterDataPipe, MapDataPipe):
        return args[0] if args else Any
    declared: Any = Any
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        if issubclass(_class_of(base), (IterDataPipe, MapDataPipe)):
            declared = datapipe_type(base)
            break
    chosen = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    if isinstance(declared, TypeVar):
        return chosen.get(declared, declared)
    inner = getattr(declared, "__parameters__", ()) if get_origin(declared) else ()
    return declared[tuple(chosen.get(p, p) for p in inner)] if inner else declared
