"""`Proxy`: stands for a tensor while a function is traced, and records what is done with it."""

from __future__ import annotations

import bisect
import dataclasses
import dis
import enum
import inspect
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .. import overrides
from ..nn.parameter import Parameter
from ._codegen import MAGIC, REFLECTABLE
from ._names import public_name, with_defaults
from .node import Node, base_types, map_aggregate, map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager", "TraceError", "TracerBase", "assert_fn"]  # fmt: skip


class TraceError(ValueError):
    """What a function does with a value cannot be recorded."""


@dataclasses.dataclass
class Scope:
    """The module whose `forward` runs: its path and class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """A block in which `scope` has the values of another."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, dataclasses.replace(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: Any) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """What makes nodes of a graph from calls with proxies.

    Attributes:
        graph (Graph): the graph that it writes.
        record_stack_traces (bool): whether `node.stack_trace` is set.
        trace_asserts (bool): whether `assert proxy` is recorded rather than refused.
        proxy_buffer_attributes (bool): whether buffers are proxies too when `forward` reads them.
        param_shapes_constant (bool): whether shapes of parameters are numbers while tracing.
    """

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    param_shapes_constant = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: OrderedDict[str, Any]
    node_name_to_scope: dict[str, Any]

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """Adds a node to the graph; override it to look at each, or to add something to it."""
        if kind == "call_function" and self.check_mutable_operations:
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack.copy()
        if self.record_stack_traces:
            node.stack_trace = _frames()
        return node

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node; override it to make proxies of a class of your own."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Adds a node whose arguments may have proxies in them, and returns its proxy."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes hold it: proxies become nodes. NotImplementedError for what no graph can hold."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(x) for x in a))
        if isinstance(a, (tuple, list)):
            return type(a)(self.create_arg(x) for x in a)
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if (
            isinstance(a, (*base_types, enum.Enum))
            or a is None
            or a is ...
            or inspect.isroutine(a)
            or isinstance(a, type)
        ):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key):
        def refuse(node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        if not isinstance(key, str):
            map_arg(self.create_arg(key), refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Called when a branch depends on a proxy: TraceError, unless overridden."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called when a loop runs over a proxy: TraceError, unless overridden."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types "
            "of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called by `**proxy`: a recorded call of `keys`."""
        return Attribute(obj, "keys")()


def _frames():
    """The frames of the program below the tracer, as a traceback shows them."""
    import traceback

    frames = [f for f in traceback.extract_stack() if "rustgrad/fx/" not in f.filename.replace("\\", "/")]
    start = next((i for i, f in enumerate(frames) if f.name == "forward"), 0)
    return "".join(traceback.format_list(frames[start:])).strip()


class GraphAppendingTracer(TracerBase):
    """Makes proxies for the nodes of a finished graph: what is done with them is added to it."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.scope = graph, Scope("", None)
        self.module_stack, self.node_name_to_scope = OrderedDict(), {}


def assert_fn(x: object) -> None:
    """`assert x` in a graph."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """Stands for the value of a node: functions, methods and operators on it become nodes.

    Its value is not known, so it cannot decide a branch or be looped over. What must not be recorded in parts goes in a
    function given to `wrap`.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("tracer", "node") or k.startswith("__") and k.endswith("__") and k not in ("__and__", "__or__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        instruction = _instruction(inspect.currentframe().f_back)[0]  # type: ignore[union-attr]
        if instruction.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instruction.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            here, after = _instruction(inspect.currentframe().f_back)  # type: ignore[union-attr]
            if here.opname.endswith("JUMP_IF_TRUE") and after.opname == "LOAD_ASSERTION_ERROR":
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What `**proxy` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracers: dict[TracerBase, None] = {}

        def note(x):
            if isinstance(x, Proxy):
                tracers[x.tracer] = None

        map_aggregate((args, kwargs or {}), note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        [tracer] = tracers
        # An op is one object as function and as method: what the namespaces have is called as a function.
        if public_name(orig_method) is None and overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs or {})
        name = tracer.graph._target_to_str(orig_method)
        space = (public_name(orig_method) or "").split(".")[1:2]
        if space and space[0] in ("linalg", "fft", "special"):
            name = f"{space[0]}_{name}"
        args, kwargs = with_defaults(orig_method, args, kwargs or {})
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _instruction(frame):
    """The bytecode instruction that a frame is at, and the next one."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = bisect.bisect_left([i.offset for i in instructions], frame.f_lasti)
    after = next((i for i in instructions[at + 1 :] if i.opname not in ("NOT_TAKEN", "CACHE")), instructions[at])
    return instructions[at], after


class Attribute(Proxy):
    """An attribute of a proxy: a node of its own when its value is used, none when it is called as a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the value."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self.param.ndim

    def size(self) -> Any:
        """The shape of the parameter."""
        return self.param.size()

    def dim(self) -> int:
        """The number of its dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """The number of its elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The number of its elements."""
        return self.param.numel()


def _operator(target):
    def method(*args: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, {})

    return method


def _reflected(target):
    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    return method


for _name in MAGIC:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(getattr(operator, _name)))
for _name in REFLECTABLE:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
