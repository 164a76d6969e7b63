"""What translated code of archives calls besides ops: attributes and methods of objects, indexing, errors, and Python's own functions.

Each looks at what it is given: nothing is asked of an object that the class in the archive does not declare.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .._base import Tensor
from .._quantized._script_object import ScriptObject
from ._objects import Object, ScriptClass
from ._resolve import PRIM, op, prim
from ._values import OPS

__all__ = ["BUILTINS", "call_function", "call_method", "check_true", "get_item", "old_division", "raise_exception", "read_attribute",
           "set_item", "wait", "write_attribute"]  # fmt: skip


class Callee:
    """The base class of an archive's functions, which variables may hold."""

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError


def read_attribute(value: Any, name: str) -> Any:
    """An attribute of an object of the archive, that its class declares."""
    names = getattr(type(value), "_fields_of_script", None)
    if names is not None and name in names:
        return getattr(value, name)
    if isinstance(value, Tensor) and name in PRIM:
        return prim(name)(value)
    if isinstance(value, enum.Enum) and name in ("name", "value"):
        return getattr(value, f"_{name}_")
    cls = _class_of(value)
    if cls is not None and name in cls.constants:
        return cls.constants[name]
    if isinstance(value, Object) and f"__{name}_getter" in cls.methods:
        return cls.methods[f"__{name}_getter"](value)
    if cls is not None and name in cls.fields:
        return value._values[name] if isinstance(value, Object) else _of_module(value.__dict__, name)
    raise AttributeError(f"code of an archive reads '{name}' of a {type(value).__name__}, which it may not")


def _of_module(state: dict[str, Any], name: str) -> Any:
    for table in ("_parameters", "_buffers", "_modules"):
        if name in state[table]:
            return state[table][name]
    return state[name]


def write_attribute(value: Any, name: str, given: Any) -> None:
    """Sets an attribute that the class of an object of the archive declares."""
    cls = _class_of(value)
    if isinstance(value, Object) and f"__{name}_setter" in cls.methods:
        cls.methods[f"__{name}_setter"](value, given)
        return
    if cls is None or name not in cls.fields:
        raise AttributeError(f"code of an archive sets '{name}' of a {type(value).__name__}, which it may not")
    if isinstance(value, Object):
        value._values[name] = given
    else:
        setattr(value, name, given)


def call_method(value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A method of an object of the archive, that its class declares."""
    cls = _class_of(value)
    if cls is not None:
        method = cls.methods.get(name)
        if method is not None:
            return method(value, *args, **kwargs)
    if isinstance(value, Tensor):
        return value.tolist() if name == "tolist" and not args else _tensor_method(value, name, args, kwargs)
    if type(value) in (list, dict, str, tuple) and name in OPS and not kwargs:
        return op("aten", name)(value, *args)
    if isinstance(value, ScriptObject) and name in _OF_PACKED:
        return getattr(value, name)(*args)
    raise AttributeError(f"code of an archive calls '{name}' of a {type(value).__name__}, which it may not")


_OF_PACKED = frozenset("unpack bias weight stride padding output_padding dilation groups transpose".split())


def call_function(function: Any, *args: Any) -> Any:
    """A function of the archive that a variable holds."""
    if not isinstance(function, (Callee, Object)):
        raise TypeError(f"code of an archive calls a {type(function).__name__}, which it may not")
    return function(*args)


def _tensor_method(x: Tensor, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An op called as a method, whose sizes may be given one by one."""
    if name in _CASTS:
        return op("aten", "to")(x, _CASTS[name])
    if name in _OF_SIZES and args and all(type(a) is int for a in args):
        args = (list(args),)
    return op("aten", name)(x, *args, **kwargs)


_CASTS = {
    "float": 6,
    "double": 7,
    "half": 5,
    "bfloat16": 15,
    "long": 4,
    "int": 3,
    "short": 2,
    "char": 1,
    "byte": 0,
    "bool": 11,
}
_OF_SIZES = frozenset("view reshape expand repeat permute flip tile new_zeros new_ones new_empty".split())


def get_item(value: Any, index: Any) -> Any:
    """`value[index]` of a tensor, a list, a tuple, a dict or a string."""
    if not isinstance(value, (Tensor, list, tuple, dict, str, Object)):
        raise TypeError(f"code of an archive indexes a {type(value).__name__}, which it may not")
    return value[index]


def set_item(value: Any, index: Any, given: Any) -> None:
    """`value[index] = given`."""
    if not isinstance(value, (Tensor, list, dict, Object)):
        raise TypeError(f"code of an archive assigns to elements of a {type(value).__name__}, which it may not")
    value[index] = given


def _class_of(value: Any) -> ScriptClass | None:
    if isinstance(value, Object):
        return value._class
    found = getattr(value, "__dict__", {}).get("_class")
    return found if isinstance(found, ScriptClass) else None


def _fork(function: Callable[[], Any]) -> Any:
    from ..futures import Future

    made: Any = Future()
    try:
        made.set_result(function())
    except Exception as error:
        made.set_exception(error)
    return made


def wait(future: Any) -> Any:
    from ..futures import Future

    if not isinstance(future, Future):
        raise TypeError(f"wait: expected a Future, got {type(future).__name__}")
    return future.wait()


def check_true(test: Any, message: Any) -> None:
    """What `assert` does."""
    if not test:
        raise_exception(f"AssertionError: {message}")


def old_division(name: str) -> Callable[..., Any]:
    """`div` of archives before version 4: of integer tensors it is rounded to zero."""
    divide = op("aten", name)

    def call(a: Any, b: Any, **kwargs: Any) -> Any:
        values = [v for v in (a, b) if isinstance(v, (Tensor, int, float, complex))]
        whole = all(
            not (v.is_floating_point() or v.is_complex()) if isinstance(v, Tensor) else isinstance(v, int)
            for v in values
        )
        if whole and any(isinstance(v, Tensor) for v in values) and not kwargs:
            kwargs = {"rounding_mode": "trunc"}
        return divide(a, b, **kwargs)

    return call


def raise_exception(message: Any, cls: Any = None) -> None:
    """What a `raise` or `assert` of the program became."""
    from . import Error

    raise Error(f"{cls or 'RuntimeError'}: {message}")


BUILTINS: dict[str, Any] = {
    "int": op("aten", "Int"), "float": op("aten", "Float"), "bool": op("aten", "Bool"), "complex": op("aten", "Complex"),
    "str": op("aten", "str"), "len": op("aten", "len"), "sorted": sorted, "range": range, "fork": _fork, "wait": wait,
    "abs": abs, "ord": ord, "chr": chr, "min": op("aten", "min"), "max": op("aten", "max"), "list": op("aten", "list"),
    "round": op("aten", "round"), "enumerate": enumerate, "zip": zip, "reversed": reversed, "print": print, "sum": op("aten", "sum"),
    "any": op("aten", "any"), "all": op("aten", "all"),
}  # fmt: skip
