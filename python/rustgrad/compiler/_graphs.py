"""Functions compiled by a backend of the program: `backend(graph_module, example_inputs)` gives what is called in their place.

A call for which there is no graph is audited and runs on fake tensors, which writes its graph (`_graph_calls`) and changes nothing. What the
function read becomes guards, those of plans: a graph runs where the arguments look as they did and everything that was read is as it was.
"""

from __future__ import annotations

import inspect
import operator
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._formats import strided
from .._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from ..fx.graph_module import GraphModule
from ..nn.modules.module import Module
from ._audit import Audit, Unsafe
from ._backends import BackendCompilerFailed
from ._calls import Calls, uncollected
from ._graph_calls import CONSTANTS, HOME, Disturbed, GraphCalls, NoGraph, fake_of, name_of
from ._watch import Watched, _aliases, _returned, here, setting

__all__ = ["GraphWatched"]

# Graphs of one function, as in PyTorch.
GRAPHS = 8


class _Reads(Audit):
    """An audit that knows where tensors are."""

    def _start(self) -> None:
        super()._start()
        self.places: dict[int, str] = {}

    def _tensor(self, o: Tensor, place: str) -> None:
        super()._tensor(o, place)
        self.places.setdefault(id(o), place)

    def _nn_module(self, o: Module, place: str) -> None:
        for kind, table in (("parameters", o._parameters), ("buffers", o._buffers)):
            for name, t in table.items():
                self.places.setdefault(id(t), f"{place}.{kind}.{name}")
        super()._nn_module(o, place)


def _look(value: Any) -> Any:
    """What an argument looks like, as a key: tensors by their form, objects by identity."""
    if isinstance(value, Tensor):
        if value.layout is not strided or value.is_nested:
            return type(value), id(value)
        return type(value), value.dtype, value.shape, value.stride(), value.device, value.requires_grad
    t = type(value)
    if t in (tuple, list):
        return (t, *map(_look, value))
    if t is dict:
        return (t, *((_look(k), _look(v)) for k, v in value.items()))
    return (t, repr(value)) if isinstance(value, CONSTANTS) else (t, id(value))


def _key(args: tuple, kwargs: dict) -> tuple[Any, list[Tensor]]:
    """What a call looks like, and its tensors."""
    tensors = _C._compile_inputs(args, kwargs)
    return (_look(args), _look(kwargs), _aliases(tensors)), tensors


def _replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of an argument with `change` applied to what is in its tuples, lists and dicts."""
    if type(value) in (tuple, list):
        return type(value)([_replaced(v, change) for v in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(v, change) for v in value))
    if type(value) is dict:
        return {k: _replaced(v, change) for k, v in value.items()}
    return change(value)


class _Place:
    """Where a result is found: among the outputs of the graph, or among the tensors of the arguments."""

    def __init__(self, index: int, of_graph: bool) -> None:
        self.index, self.of_graph = index, of_graph


class _Compiled:
    """A graph that a backend has compiled, with its guards. Called, it returns the result, or itself where a guard misses."""

    def __init__(self, run: Any, trace: _Trace, guards: Any, key: Any) -> None:
        self.run, self.graph_module, self.guarded, self.key = run, trace.module, guards, key
        places = {id(t): i for i, t in enumerate(trace.tensors)}
        # Of each input its place among the tensors of a call, or the tensor itself.
        self.inputs = [places.get(id(t), t) for t in trace.inputs]
        self.outside = [(t, _look(t)) for t in self.inputs if isinstance(t, Tensor)]
        self.result = trace.result
        self.hits = 0

    def __call__(self, args: tuple, kwargs: dict) -> Any:
        key, tensors = _key(args, kwargs)
        if key != self.key or self.guarded((), {}) is self.guarded or any(_look(t) != look for t, look in self.outside):
            return self
        return self.ran(tensors)

    def ran(self, tensors: list[Tensor]) -> Any:
        """What a call with these tensors returns."""
        self.hits += 1
        found = self.run(*(tensors[i] if type(i) is int else i for i in self.inputs))
        values = found if isinstance(found, (tuple, list)) else [found]

        def now(value: Any) -> Any:
            if type(value) is not _Place:
                return value
            return values[value.index] if value.of_graph else tensors[value.index]

        return _replaced(self.result, now)

    def missed(self, args: tuple, kwargs: dict) -> str | None:
        """Which guard misses; None where the graph fits."""
        if _key(args, kwargs)[0] != self.key:
            return "the arguments look otherwise"
        if any(_look(t) != look for t, look in self.outside):
            return "a tensor from outside looks otherwise"
        return self.guarded.missed((), {})  # type: ignore[no-any-return]

    def listing(self) -> str:
        """The graph's code."""
        return str(self.graph_module.code).strip()

    def steps(self) -> list[str]:
        """The names of its calls."""
        return [n.name for n in self.graph_module.graph.nodes if n.op not in ("placeholder", "output", "get_attr")]

    def guards(self) -> list[str]:
        """What has to be as it was."""
        return [*self.guarded.guards(), f"{len(self.outside)} tensors from outside keep their form"]


class _CallsOf(Calls):
    """The calls of the program, without those that write the graph."""

    def __init__(self, audit: Audit, mode: GraphCalls) -> None:
        super().__init__(audit)
        self.mode = mode

    def see(self, frame: Any, event: str, function: Any) -> None:
        """The profile function of the interpreter."""
        if not self.mode.busy:
            super().see(frame, event, function)


class _Trace:
    """The graph of one call: Unsafe or NoGraph where it cannot be one."""

    def __init__(self, function: Any, args: tuple, kwargs: dict, tensors: list[Tensor]) -> None:
        self.function, self.tensors = function, tensors
        self.reads = _Reads(function, args, kwargs, False)
        if self.reads.groups:
            raise NoGraph("it steps an optimizer")
        held = [(o, o.copy()) for _, what, o, *_ in self.reads.checks if what in ("dict", "list")]
        try:
            self._run(args, kwargs)
            if _Reads(function, args, kwargs, False).signature() != self.reads.signature():
                raise Disturbed("it changes an object that it reads")
        except BaseException:
            for o, before in held:
                if o != before if isinstance(o, list) else o.items() != before.items():
                    o.clear()
                    o.extend(before) if isinstance(o, list) else o.update(before)
            raise

    def _run(self, args: tuple, kwargs: dict) -> None:
        fake = FakeTensorMode()
        names = _argument_names(self.function, args, kwargs)
        fakes: dict[int, Any] = {id(t): fake_of(fake, t) for t in self.tensors}
        given = {id(fakes[id(t)]): (names.get(id(t), f"L_arg{i}_"), t) for i, t in enumerate(self.tensors)}
        mode = GraphCalls(fake, given, self._name)
        faked = _replaced((args, kwargs), lambda v: fakes.get(id(v), v))
        copies = _replaced(faked, lambda v: v)
        calls = _CallsOf(self.reads, mode)
        enabled = _C.is_grad_enabled()
        here.depth += 1
        try:
            here.recording = True
            with uncollected, calls, fake, mode:
                result = self.function(*faked[0], **faked[1])
            mode.set_grad(enabled)
            if _C.is_grad_enabled() != enabled:
                raise NoGraph("it changes the grad mode")
        finally:
            _C._set_grad_enabled(enabled)
            here.recording = False
            here.depth -= 1
        if calls.problem or calls.interrupted:
            raise Disturbed(calls.problem or "a handler of a signal runs in the middle of it")
        if not _same(faked, copies):
            raise NoGraph("it changes a container among its arguments")
        if _returned(result, self.reads.containers):
            raise NoGraph("it returns a list or dict that it did not make")
        self._finish(mode, result, fakes)

    def _name(self, t: Tensor) -> str:
        place = self.reads.places.get(id(t), "tensor").replace("the function", "self")
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        first = place.split(".")[0].split("[")[0]
        is_global = code is not None and first in code.co_names and first not in code.co_freevars
        return name_of(place, "G" if is_global else "L")

    def _finish(self, mode: GraphCalls, result: Any, fakes: dict[int, Any]) -> None:
        arguments = {id(f): i for i, f in enumerate(fakes[id(t)] for t in self.tensors)}
        outside = {id(f): t for t in mode._kept for f in [mode.outside.get(id(t))] if f is not None}
        outputs: list[Any] = []

        def place(value: Any) -> Any:
            if isinstance(value, Tensor):
                if id(value) in arguments:
                    return _Place(arguments[id(value)], False)
                if not isinstance(value, FakeTensor) or id(value) in outside:
                    return outside.get(id(value), value)
                outputs.append(mode.node_of(value))
                return _Place(len(outputs) - 1, True)
            if isinstance(value, CONSTANTS) or id(value) in self.reads._seen:
                return value
            raise NoGraph(f"it returns a {type(value).__name__}")

        self.result = _replaced(result, place)
        graph = mode.graph
        graph.output(tuple(outputs))
        for node in reversed(list(graph.nodes)):
            if node.target is operator.getitem and not node.users:
                graph.erase_node(node)
        self.inputs, self.count = mode.inputs, mode.count
        self.module = GraphModule({}, graph)


def _same(a: Any, b: Any) -> bool:
    """Whether two copies of arguments hold the same objects."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is dict:
        return list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    return a is b


def _argument_names(function: Any, args: tuple, kwargs: dict) -> dict[int, str]:
    """`L_x_` for the argument `x`, `L_x_0_` for the first item of it, by the identity of the tensor."""
    plain = function.forward if isinstance(function, Module) else function
    try:
        bound = inspect.signature(plain).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {f"arg{i}": v for i, v in enumerate(args)} | kwargs
    found: dict[int, str] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Tensor):
            found.setdefault(id(value), name_of(path, "L"))
        elif isinstance(value, (tuple, list)):
            for i, v in enumerate(value):
                walk(v, f"{path}_{i}")
        elif isinstance(value, dict):
            for k, v in value.items():
                walk(v, f"{path}_{k}")

    for name, value in bound.items():
        walk(value, name)
    return found


class GraphWatched(Watched):
    """A function with the graphs that a backend has compiled.

    Args:
        function (callable): the function or module.
        fullgraph (bool): raise `Unsupported` where it is not one graph.
        backend (callable): `backend(graph_module, example_inputs, **options)`.
        options (dict): its keyword arguments.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool, backend: Any, options: dict[str, Any]) -> None:
        super().__init__(function, fullgraph, GRAPHS, True, None)
        self.backend, self.options = backend, options
        self.verify, self.on = False, setting() != "eager"
        self.refused: dict[Any, str] = {}

    def reset(self) -> None:
        """Forgets the graphs."""
        super().reset()
        self.refused.clear()

    def call(self, args: tuple, kwargs: dict) -> Any:
        """A call for which no graph has run."""
        if not self.on or here.recording or here.disabled or here.stance == "force_eager" or _C._is_traced():
            return self.eager(args, kwargs)
        if _C._is_torch_function_mode_enabled() or _is_dispatched():
            return self.eager(args, kwargs)
        if here.stance in ("fail_on_recompile", "eager_on_recompile") and self.plans:
            if here.stance == "fail_on_recompile":
                raise RuntimeError(
                    f"compile: no graph fits this call, and the stance is fail_on_recompile: {self.why(args, kwargs)}"
                )
            return self.eager(args, kwargs)
        key, tensors = _key(args, kwargs)
        guards = _guards([])
        form = (key, _C.is_grad_enabled(), isinstance(guards, str))
        if form in self.refused:
            return self.eager(args, kwargs)
        if isinstance(guards, str):
            return self.refuse_graph(form, guards, args, kwargs)
        if len(self.plans) >= self.most:
            missed = self.why(args, kwargs)
            return self.refuse_graph(form, f"it has {self.most} graphs, and none fits: {missed}", args, kwargs)
        try:
            trace = _traced(self.function, args, kwargs, tensors)
            guards = _guards(trace.reads.checks)
            if isinstance(guards, str):
                raise NoGraph(guards)
        except (Unsafe, NoGraph) as problem:
            return self.refuse_graph(form, str(problem) + _line(problem), args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as problem:
            text = f"it depends on the elements of a tensor ({problem.func}){_line(problem)}"
            return self.refuse_graph(form, text, args, kwargs)
        except Exception as problem:
            # What the function raises it raises as it is too; fake tensors do not run everything.
            text = f"{type(problem).__name__}: {problem}{_line(problem)}"
            return self.refuse_graph(form, text, args, kwargs, True)
        if not trace.count:
            self.refused[form] = "it computes nothing"
            return self.eager(args, kwargs)
        if self.plans:
            self.missed.append(self.why(args, kwargs))
        compiled = _Compiled(self.compiled(trace), trace, guards, key)
        self.plans.append(compiled)
        self.road = "compiled"
        return compiled.ran(tensors)

    def refuse_graph(self, form: Any, reason: str, args: tuple, kwargs: dict, raised: bool = False) -> Any:
        """The function as it is, from now on where calls look so; says so once. If it raised, it has to run first."""
        result = self.eager(args, kwargs) if raised else None
        self.refused[form] = reason
        self.say(reason)
        return result if raised else self.eager(args, kwargs)

    def compiled(self, trace: _Trace) -> Any:
        """What the backend makes of a graph."""
        try:
            made = self.backend(trace.module, list(trace.inputs), **self.options)
            if not callable(made):
                raise TypeError(f"a backend returns a callable, got {type(made).__name__}")
        except Exception as problem:
            raise BackendCompilerFailed(self.backend, problem) from problem
        return made


def _traced(function: Any, args: tuple, kwargs: dict, tensors: list[Tensor]) -> _Trace:
    """The graph of a call, in a second run if something disturbed the first."""
    try:
        return _Trace(function, args, kwargs, tensors)
    except Disturbed:
        return _Trace(function, args, kwargs, tensors)


def _line(problem: BaseException) -> str:
    """The line of the program where an error comes from."""
    found = ""
    for frame, line in traceback.walk_tb(problem.__traceback__):
        code = frame.f_code
        if not code.co_filename.startswith(HOME):
            found = f" at {code.co_filename}:{line} ({code.co_name})"
    return found


def _is_dispatched() -> bool:
    """Whether a mode below autograd is on, which sees the calls of the function."""
    stack = sys.modules.get("rustgrad._dispatch._stack")
    return bool(stack is not None and stack.state.modes)


def _guards(checks: list[tuple]) -> Any:
    """A plan of nothing, whose guards are what was read; a text where there are settings that are no guards."""
    _, recording = _C._compile_record([], [], _nothing, (), {}, None)
    return _C._compile_plan(recording, None, (), {}, checks, checks, [], [], [])


def _nothing() -> None:
    pass
