"""`rustgrad.ops`: ops by namespace, as `torch.ops.aten.relu(x)`; those that a program registers with `library` too."""

from __future__ import annotations

import inspect
import types
from typing import Any

from . import _aten
from .overrides import handle_torch_function, has_torch_function

__all__: list[str] = []


def _enter_range(name, args=None):
    from .profiler import record_function

    return record_function(name, args).__enter__()


def _exit_range(handle):
    handle.__exit__(None, None, None)


class _Classes(types.ModuleType):
    """`rustgrad.classes`: C++ classes of programs, of which there are none."""

    loaded_libraries: frozenset[str] = frozenset()

    def __getattr__(self, name):
        raise AttributeError(f"classes: no C++ class or namespace {name!r}; compiled extensions do not load here")


classes: Any = _Classes("rustgrad.classes", _Classes.__doc__)

# What `_aten` defines.
_named = {name: f for name, f in vars(_aten).items() if isinstance(f, types.FunctionType)}


def _with_grad(enabled, function, *args):
    """`function(*args)` with gradients recorded, or not: how graphs show a block of `no_grad`."""
    from .autograd.grad_mode import set_grad_enabled

    with set_grad_enabled(enabled):
        return function(*args)


def _control_flow(name):
    def call(*args: Any) -> Any:
        from ._higher_order_ops import control_flow

        result = getattr(control_flow, name)(*args)
        return (result,) if not isinstance(result, (tuple, list)) else result

    return call


# Ops of programs: namespace -> name -> callable.
registered: dict[str, dict[str, Any]] = {
    "profiler": {
        "_record_function_enter": _enter_range,
        "_record_function_enter_new": _enter_range,
        "_record_function_exit": _exit_range,
    },
    "prim": {"device": lambda self: self.device, "layout": lambda self: self.layout},
    "higher_order": {"wrap_with_set_grad_enabled": _with_grad, "cond": _control_flow("cond")},
}


class HigherOrderOperator:
    """PyTorch's class of ops that take functions; here those are functions (`cond`, `while_loop`), and nothing is one."""

    def __init__(self, name: str, **settings: Any) -> None:
        raise NotImplementedError(f"HigherOrderOperator({name!r}): ops that take functions are ordinary functions here")


def renamed_self(function, args, kwargs):
    """Arguments of which `self` is given by name: functions call it so or `input`, or take it first."""
    try:
        names = inspect.signature(function).parameters
    except ValueError:
        # There are several signatures.
        names = {"input": None}
    if "self" in names:
        return args, kwargs
    value, others = kwargs["self"], {k: v for k, v in kwargs.items() if k != "self"}
    return (args, {"input": value, **others}) if "input" in names else ((value, *args), others)


# What calls of ops go through once dispatch to Python is loaded (`_dispatch`).
below: Any = None


def items_of(args, kwargs):
    """The arguments of a call and the items of lists among them: what may override it."""
    given = (*args, *kwargs.values())
    lists = [value for value in given if type(value) in (list, tuple)]
    return (*given, *(item for value in lists for item in value)) if lists else given


class OpOverload:
    """An op by the name of its overload; `aten.relu.default` and `aten.relu` do the same."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overload = packet, overload
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torch._ops.{packet._namespace}"
        self._known: Any = None

    @property
    def _overloadpacket(self) -> OpOverloadPacket:
        return self.overloadpacket

    @property
    def _overloadname(self) -> str:
        return self._overload

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if below is not None:
            return below(self, args, kwargs)
        given = items_of(args, kwargs)
        if has_torch_function(given):
            return handle_torch_function(self, given, *args, **kwargs)
        return self.overloadpacket(*args, **kwargs)

    def __reduce__(self) -> Any:
        return getattr, (self.overloadpacket, self._overload)

    @property
    def op(self) -> OpOverloadPacket:
        """The op with all its overloads."""
        return self.overloadpacket

    @property
    def is_view(self) -> bool:
        """Whether the result shares memory with an argument."""
        schema = self._schema
        return schema is not None and not schema.is_mutable and schema.is_view

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether the op is one: all here are."""
        return True

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """What a composite op consists of, dispatched; NotImplemented for one that modes see itself."""
        from ._dispatch import _composites

        parts = _composites.find(self)
        return NotImplemented if parts is None else parts(*args, **kwargs)

    @property
    def namespace(self) -> str:
        """The namespace of the op."""
        return self.overloadpacket._namespace

    @property
    def _schema(self) -> Any:
        """The arguments and results; None where they are not known."""
        if self._known is not None:
            return self._known
        from ._schema import find

        found = find(self.namespace, self.overloadpacket.__name__, self._overload)
        if self.namespace == "aten":
            # That of a program's op may change.
            self._known = found
        return found

    def name(self) -> str:
        """`aten::relu.default` without the overload that has no name."""
        suffix = "" if self._overload == "default" else f".{self._overload}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{suffix}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overload}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


class OpOverloadPacket:
    """An op of a namespace; its attributes are its overloads."""

    def __init__(self, namespace: str, name: str, function: Any) -> None:
        self._namespace, self.__name__, self._function = namespace, name, function
        self.__qualname__, self.__doc__ = name, getattr(function, "__doc__", None)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if below is not None:
            return below(self, args, kwargs)
        given = items_of(args, kwargs)
        if has_torch_function(given):
            return handle_torch_function(self, given, *args, **kwargs)
        if "self" in kwargs:
            args, kwargs = renamed_self(self._function, args, kwargs)
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = OpOverload(self, name)
        setattr(self, name, found)
        return found

    def __reduce__(self) -> Any:
        return _packet, (self._namespace, self.__name__)

    def overloads(self) -> list[str]:
        """The names of overloads: one, since an op here takes all its forms."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"


def _forms():
    from . import _aten_forms

    return _aten_forms


def _packet(namespace, name):
    """Unpickles an op."""
    return getattr(getattr(ops, namespace), name)


def _refusing(name, space="aten"):
    """Programs name ops to compare them with those that they are called with; such names may be unknown."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"ops.{space}.{name}: there is no such op here")

    return function


# Operators that are ops by these names.
_OPERATORS = frozenset(f"__{name}__" for name in "and or xor lshift rshift iand ior ixor ilshift irshift".split())


# Collectives are functions of `distributed`, and no ops.
_COLLECTIVES = ("_c10d_functional", "c10d_functional", "c10d")


class _Namespace(types.ModuleType):
    def __init__(self, name):
        super().__init__(f"rustgrad.ops.{name}")
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__") and name not in _OPERATORS:
            raise AttributeError(name)
        function = registered.get(self._name, {}).get(name)
        if function is None and self._name == "aten":
            function = _named.get(name) or _forms().find(name) or _refusing(name)
        if function is None and self._name in _COLLECTIVES:
            function = _refusing(name, self._name)
        if function is None and self._name == "quantized":
            from ._quantized._ops import table

            function = table().get(name)
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self._name, name, function)
        setattr(self, name, packet)
        return packet


class _Ops(types.ModuleType):
    """The namespaces; one that nobody registered has no ops."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Namespace(name)
        setattr(self, name, made)
        return made

    def load_library(self, path: Any) -> None:
        """OSError: libraries of compiled ops are written for PyTorch's C++ interface."""
        raise OSError(f"ops.load_library: {path}: compiled ops need PyTorch's C++ library, which is not here")


def forget(namespace: str, name: str) -> None:
    """Removes an op of a program."""
    registered.get(namespace, {}).pop(name, None)
    vars(getattr(ops, namespace)).pop(name, None)


ops: Any = _Ops("rustgrad.ops", "Ops by namespace: `rustgrad.ops.aten`, and those registered with `rustgrad.library`.")
