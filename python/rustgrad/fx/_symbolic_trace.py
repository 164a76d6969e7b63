"""`Tracer` and `symbolic_trace`: run a function with proxies and keep what it does with them as a graph."""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import functools
import inspect
import itertools
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._checks import _assert
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils import _pytree
from ._pytree import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

_tracing = 0
# Functions that `wrap` named: (globals, name), and (class, method).
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods: list[tuple[type, str]] = []
_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracing > 0


def is_fx_symbolic_tracing() -> bool:
    """Whether a function is being traced."""
    return _tracing > 0


class PHBase:
    """Stands in `concrete_args` for a value that is not concrete."""

    def __repr__(self) -> str:
        return "PH"


PH: PHBase = PHBase()


class PHWithMeta(PHBase):
    """A `PH` whose attributes the node of the placeholder gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _with_attributes(proxy, value):
    """A placeholder with the attributes that a `PH` of the program has."""
    for name, attribute in vars(value).items():
        if not hasattr(proxy.node, name):
            setattr(proxy.node, name, attribute)
    return proxy


class ProxyableClassMeta(type):
    """A metaclass: while a function is traced, making an object from proxies is recorded as a call of its class.

    An object that existed before becomes an attribute of the root.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_in((args, kwargs)) if is_fx_tracing() else None
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


class _Patches:
    """Attributes and items replaced for the time of a block."""

    def __init__(self):
        self._undo = contextlib.ExitStack()
        self._visited: set[int] = set()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._undo.close()

    def item(self, table, key, value):
        self._undo.callback(table.__setitem__, key, table[key]) if key in table else self._undo.callback(table.pop, key)
        table[key] = value

    def attribute(self, owner, name, value):
        if name in vars(owner):
            self._undo.callback(setattr, owner, name, vars(owner)[name])
        else:
            self._undo.callback(delattr, owner, name)
        setattr(owner, name, value)

    def wrapped_functions(self):
        """Functions and methods that `wrap` named record a call of themselves."""
        for (_, name), table in _wrapped.items():
            found = table.get(name, getattr(builtins, name, None))
            if found is not None:
                self.item(table, name, _recording(found))
        for cls, name in _wrapped_methods:
            self.attribute(cls, name, _recording_method(cls, name))

    def functions_of(self, table, wanted):
        """In a module's names, functions among `wanted` (by identity) record a call of themselves."""
        if id(table) in self._visited:
            return
        self._visited.add(id(table))
        for name, value in list(table.items()):
            if not name.startswith("_") and callable(value) and id(value) in wanted:
                self.item(table, name, _recording(value))


def _proxy_in(args):
    found: list[Proxy] = []

    def note(x):
        if isinstance(x, Proxy):
            found.append(x)

    map_aggregate(args, note)
    return found[-1] if found else None


def _recording(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        proxy = _proxy_in((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _recording_method(cls, name):
    function = getattr(cls, name)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        proxy = _proxy_in((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def wrap(fn_or_name: Any) -> Any:
    """Makes calls of a function one node, instead of what it does inside.

    Call it at the top level of the module that calls the function, or decorate the function with it there.

    Args:
        fn_or_name (callable or str): the function, or the name of a global or builtin (`wrap("len")`).

    Raises:
        RuntimeError: it is neither callable nor a string.
        NotImplementedError: the call is not at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _with_positional(function, count):
    """A function whose `*args` and `**kwargs` are given as ordinary arguments, so that a proxy can stand for them."""
    code = function.__code__.replace(
        co_flags=function.__code__.co_flags & ~_STARS,
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
    )
    return types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


class Tracer(TracerBase):
    """Traces a module or a function; subclasses decide what becomes one node.

    Args:
        autowrap_modules (tuple): modules whose functions become one node where the traced code calls them.
        autowrap_functions (tuple): functions for which that is so too.
        param_shapes_constant (bool): shapes of parameters are numbers, so that branches on them work.
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}
        self._autowrap_modules = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope, self.module_stack, self.num_calls = Scope("", None), collections.OrderedDict(), {}
        self.node_name_to_scope: dict[str, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # Modules of functions, which cannot be copied, are the same for both.
        copied = type(self).__new__(type(self))
        for key, value in vars(self).items():
            copied.__dict__[key] = copy.copy(value) if key == "_autowrap_modules" else copy.deepcopy(value, memo)
        return copied

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name for a new attribute of the root."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Any:
        """As in `TracerBase`; parameters, buffers and other tensors become nodes that read them from the root.

        Raises:
            NameError: a parameter that the root does not have.
        """
        if isinstance(a, Proxy):
            return a.node
        named = ()
        if isinstance(a, Parameter):
            named = self.root.named_parameters()
        elif isinstance(a, _C.Tensor):
            named = self.root.named_buffers()
        elif isinstance(a, Module):
            named = self.root.named_modules()
        for name, value in named:
            if value is a:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, Parameter):
            raise NameError("parameter is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(x) for x in a), {})
        if isinstance(type(a), ProxyableClassMeta):
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, _C.Tensor):
            name = self.tensor_attrs.get(id(a))
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[id(a)] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node: those of `nn`, except `Sequential`."""
        return type(m).__module__.startswith(
            ("torch.nn", "rustgrad.nn", "torch.ao.nn", "rustgrad.ao.nn")
        ) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a module from the root. NameError if it is not in it."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Called instead of a module: one node, or `forward`, as `is_leaf_module` decides."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called when traced code reads a parameter, buffer or submodule: a proxy for parameters, else the value."""
        named = ()
        if isinstance(attr_val, Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, _C.Tensor):
            named = self.root.named_buffers()
        for name, value in named:
            if value is not attr_val:
                continue
            if name not in parameter_proxy_cache:
                options = {}
                if self.param_shapes_constant:
                    options["proxy_factory_fn"] = functools.partial(self._parameter_proxy, name, attr_val)
                parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
            return parameter_proxy_cache[name]
        return attr_val

    def _parameter_proxy(self, name, parameter, node):
        return ParameterProxy(self, node, name, parameter)

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """(the function to call, its arguments): a placeholder for each parameter."""
        plain = inspect.unwrap(root_fn)
        code, signature = plain.__code__, inspect.signature(plain)
        count = code.co_argcount + code.co_kwonlyargcount
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        first = 1 if is_module else 0
        names = list(code.co_varnames[first:count])
        if isinstance(concrete_args, tuple) and not names and code.co_flags & inspect.CO_VARARGS:
            # Values for `*args`: the graph takes so many arguments.
            names = [f"input_{i}" for i in range(len(concrete_args))]
            values = [{} if isinstance(v, PHBase) else {n: v} for n, v in zip(names, concrete_args, strict=True)]
            given = [self._argument(n, v, signature, plain) for n, v in zip(names, values, strict=True)]
            return self._on_leaves(root_fn, names, [self.root] * first, given)
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        args = [self._argument(name, concrete_args or {}, signature, plain) for name in names]
        names = [_with_default(signature.parameters[name]) for name in names]
        if code.co_kwonlyargcount or code.co_flags & _STARS:
            rest = list(code.co_varnames[count:])
            for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
                if code.co_flags & flag:
                    names.append(stars + rest.pop(0))
                    args.append(self.create_proxy("placeholder", names[-1], (), {}))
            root_fn = _with_positional(plain, first + len(args))
        return self._on_leaves(root_fn, names, [self.root] * first, args)

    def _on_leaves(self, function, names, module, args):
        """`function` and its arguments; if some are containers, a function of the leaves of all."""
        if all(isinstance(a, Proxy) or _pytree.tree_flatten(a)[1].is_leaf() for a in args):
            return function, [*module, *args]
        leaves, in_spec = _pytree.tree_flatten(tuple(args))

        def of_leaves(*given):
            returned = function(*module, *in_spec.unflatten(given[len(module) :]))
            flat, out_spec = _pytree.tree_flatten(returned)
            self.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, in_spec, out_spec)))
            return flat

        return of_leaves, [*module, *leaves]

    def _argument(self, name, concrete, signature, function):
        parameter = signature.parameters.get(name)
        default = () if parameter is None or parameter.default is parameter.empty else (parameter.default,)
        starred = name not in signature.parameters
        if name not in concrete or (starred and isinstance(concrete[name], PHBase)):
            note = _annotations(function).get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=note)
        if isinstance(concrete[name], PHBase):
            return _with_attributes(self.create_proxy("placeholder", f"{name}_1", default, {}), concrete[name])
        value = concrete[name]
        if not _pytree.tree_flatten(value)[1].is_leaf():
            count = itertools.count(1)
            return _pytree.tree_map(lambda leaf: self._specialized(name, f"{name}_{next(count)}", leaf, ()), value)
        return self._specialized(name, f"{name}_1", value, default)

    def _specialized(self, name, target, value, default):
        """A value of `concrete_args`; the graph asserts that it is given the same one. PH is a proxy."""
        given = self.create_proxy("placeholder", target, default, {})
        if isinstance(value, PHBase):
            return _with_attributes(given, value)
        if isinstance(value, (bool, int, float, str)):
            message = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _assert, (given == value, message), {})
        elif value is None:
            message = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (given, message), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the"
                " user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )
        return value

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's `forward` or of a function.

        Args:
            root (Module or callable): a function becomes the graph of an empty module.
            concrete_args (dict): arguments that are numbers, strings or None while tracing, so that branches on them work;
                the graph asserts that it is called with the same ones. Containers of them, with PH where a value is not
                concrete; the graph's placeholders are their leaves. A tuple has a value for each argument.

        Raises:
            TraceError: a branch or a loop depends on a traced value.
        """
        global _tracing
        _tracing += 1
        try:
            if isinstance(root, Module):
                if not hasattr(type(root), self.traced_func_name):
                    raise AssertionError(
                        f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                    )
                self.root, function = root, getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {m: name for name, m in root.named_modules()}
            else:
                self.root, function = Module(), root
            self.graph = Graph(tracer_cls=type(self))
            code = getattr(inspect.unwrap(function), "__code__", None)
            if code is not None:
                self.graph._source = f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"
            self.tensor_attrs = {
                id(value): ".".join(filter(None, (path, name)))
                for path, m in self.root.named_modules()
                for name, value in vars(m).items()
                if isinstance(value, _C.Tensor)
            }
            called, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            with self._patched(inspect.unwrap(function).__globals__):
                returns = _annotations(inspect.unwrap(function)).get("return")
                self.create_node("output", "output", (self.create_arg(called(*args)),), {}, type_expr=returns)
            self.submodule_paths = None
        finally:
            _tracing -= 1
        return self.graph

    @contextlib.contextmanager
    def _patched(self, table) -> Iterator[None]:
        """A block in which modules and wrapped functions ask this tracer first."""
        read, call = Module.__getattr__, Module.__call__
        parameters: dict[str, Any] = {}

        def getattr_(module, name):
            return self.getattr(name, read(module, name), parameters)

        def call_(module, *args, **kwargs):
            def forward(*args, **kwargs):
                return call(module, *args, **kwargs)

            found = getattr(getattr(module, "forward", module), "__globals__", None)
            if found is not None:
                patches.functions_of(found, self._autowrap_ids)
            return self.call_module(module, forward, args, kwargs)

        with _Patches() as patches:
            patches.attribute(Module, "__getattr__", getattr_)
            patches.attribute(Module, "__call__", call_)
            patches.wrapped_functions()
            for names in (table, *map(vars, self._autowrap_modules)):
                patches.functions_of(names, self._autowrap_ids)
            yield


def _annotations(function):
    """The annotations of a function; those of the library are text, and PyTorch has none where they say `Any`."""
    found = inspect.get_annotations(function)
    if (function.__module__ or "").split(".")[0] != "rustgrad":
        return found
    if "Any" in found.values():
        return {}
    return {name: _C.Tensor for name, text in found.items() if text == "Tensor"}


def _with_default(parameter):
    """A parameter as a definition names it, with its default value if that is a plain one."""
    plain = parameter.default is None or isinstance(parameter.default, (bool, int, float, str))
    return f"{parameter.name} = {parameter.default!r}" if plain else parameter.name


def _assert_is_none(value, message):
    assert value is None, message


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module or function as a `GraphModule` of what it does; see `Tracer.trace`."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


# Code that has been traced is traced again with a proxy for the value.
wrap("_assert_is_none")
