"""`Node`: one call, input or result in a graph, and the functions that replace nodes inside arguments."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from .. import _C
from .._checks import _assert
from .._formats import layout, memory_format
from .._ops import OpOverload, ops
from ._names import is_operator, qualified_name
from .immutable_collections import immutable_dict, immutable_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes = (
    str | int | float | bool | complex | _C.dtype | _C.Tensor | _C.device | memory_format | layout | OpOverload
)
base_types = BaseArgumentTypes.__args__
Target = Any
Argument = Any

_KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
# Functions of `operator` that write to their first argument, as code.
INPLACE = {
    **{
        f"i{name}": f"{{}} {sign}= {{}}"
        for name, sign in {
            "add": "+", "and": "&", "floordiv": "//", "lshift": "<<", "matmul": "@", "mod": "%", "mul": "*", "or": "|",
            "pow": "**", "rshift": ">>", "sub": "-", "truediv": "/", "xor": "^",
        }.items()
    },
    "setitem": "{}[{}] = {}",
}  # fmt: skip
_side_effects: set[Any] = {
    _assert,
    *(getattr(ops.profiler, f"_record_function_{n}") for n in ("enter", "enter_new", "exit")),
}


def _get_qualified_name(func: Any) -> str:
    """The name by which a function is reached: `torch.relu`, `_operator.add`."""
    name = qualified_name(func)
    return f"_{name}" if is_operator(func) else name


def has_side_effect(fn: Any) -> Any:
    """Marks a function: a call of it stays in the graph though nobody uses the result. Returns it; also a decorator."""
    _side_effects.add(fn)
    return fn


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`a` with each node in it, at any depth, replaced by `fn(node)`."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with each value that is no tuple, list, dict or slice replaced by `fn(value)`."""
    if isinstance(a, tuple):
        items = [map_aggregate(x, fn) for x in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


class Node:
    """A call, input or result in a graph. Made by the graph's methods, not by hand.

    Attributes:
        graph (Graph): the graph it belongs to.
        op (str): "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        name (str): its name in the code, unique in the graph.
        target: the function; or the name of the method, module, attribute or parameter.
        args (tuple), kwargs (dict): the arguments, with nodes for values of the graph; assign them to change them.
        users (dict): the nodes that use it, in order.
        type: the annotation of the value, or None.
        meta (dict): for whoever transforms the graph.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _KINDS:
            raise AssertionError(f"fx.Node: got {op!r}; expected one of {_KINDS}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a Callable "
                "is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a str is "
                "expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def _set(self, args, kwargs):
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def note(node):
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    @property
    def next(self) -> Node:
        """The node after it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in its arguments, each once."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """The Python frames that made it, where the tracer recorded them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Moves `x` before this node. AssertionError for a node of another graph."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Moves `x` after this node."""
        self._next.prepend(x)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replaces one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Puts a positional argument before number `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replaces one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Makes the users of this node use another; returns them.

        Args:
            delete_user_cb (callable): called with each user; where it returns False, that user stays.
            propagate_meta (bool): copies `meta` to the other node, which must have none.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces a node in the arguments of this one."""

        def swap(node):
            return new_input if node is old_input else node

        self._set(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def normalized_arguments(
        self, root: Any, arg_types: Any = None, kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False
    ) -> Any:
        """The arguments with the defaults of what it calls, as `operator_schemas.ArgsKwargsPair`; None where these are not known.

        Args:
            root (Module): has the modules that the graph calls.
            arg_types (tuple), kwarg_types (dict): types of the arguments, which decide among overloads.
            normalize_to_only_use_kwargs (bool): whether arguments by position come by name too.
        """
        from .operator_schemas import normalize_function, normalize_module

        args, kwargs = self.args, dict(self.kwargs)
        if self.op == "call_function":
            return normalize_function(self.target, args, kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, args, kwargs, normalize_to_only_use_kwargs)
        return None

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay though nobody uses it: inputs, results, in-place methods, modules that draw or count."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or self._changes_argument() or impure_random and self._draws()
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    def _changes_argument(self):
        """Whether a call of a function writes to an argument: `relu_`, `inplace=True`, `x += y`, `out=`."""
        name = getattr(self.target, "__name__", "").split(".")[0]
        if is_operator(self.target):
            return name in INPLACE
        named = name.endswith("_") and not name.endswith("__")
        return named or self.kwargs.get("out") is not None or self.kwargs.get("inplace") is True

    def _draws(self):
        return getattr(self.target, "__name__", "") in _RANDOM and qualified_name(self.target).startswith("torch.")

    def _pretty_target(self):
        return _typename(self.target) if callable(self.target) else str(self.target)

    def format_node(self) -> str:
        """One line about it, as the printed graph has it."""
        note = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder":
            return f"%{self.name} : {note}[num_users={len(self.users)}] = {self.op}[target={self.target}]" + (
                f"(default={self.args[0]})" if self.args else ""
            )
        if self.op == "get_attr":
            return f"%{self.name} : {note}[num_users={len(self.users)}] = {self.op}[target={self._pretty_target()}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        return (
            f"%{self.name} : {note}[num_users={len(self.users)}] = {self.op}[target={self._pretty_target()}]"
            f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
        )

    def _rename(self, candidate):
        if candidate != self.name:
            self.name = self.graph._namespace.create_name(candidate)
            self.graph._namespace.rename(self, self.name)

    def __repr__(self) -> str:
        return self.name


_RANDOM = frozenset(
    "bernoulli dropout alpha_dropout feature_dropout multinomial normal poisson rand rand_like randint randint_like randn "
    "randn_like randperm rrelu".split()
)


def _typename(target):
    if getattr(target, "__module__", None) == "builtins" and hasattr(target, "__name__"):
        return f"builtins.{target.__name__}"
    return qualified_name(target)


def _type_repr(kind):
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        return kind.__qualname__ if kind.__module__ == "builtins" else qualified_name(kind)
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return repr(kind).replace("rustgrad.", "torch.")


def _shown(arg):
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return f"{type(arg).__name__}({', '.join(f'{n}={_shown(v)}' for n, v in zip(arg._fields, arg, strict=True))})"
    if isinstance(arg, list):
        return "[" + ", ".join(map(_shown, arg)) + "]"
    if isinstance(arg, tuple):
        return "(" + ", ".join(map(_shown, arg)) + ("," if len(arg) == 1 else "") + ")"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in arg.items()) + "}"
    return f"%{arg.name}" if isinstance(arg, Node) else str(arg)


_format_arg = _shown
