"""`make_fx`: a function runs with its arguments, and a mode below autograd writes the ops that it sees as a graph.

A tensor is known by the object, or by the memory and form that it has: what autograd saved comes back as another object. Those that are not
known are constants of the graph, as in PyTorch; so what computes tensors unseen raises an error instead (`knows`, `refuse`).
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._C import Tensor
from .._ops import OpOverload, ops
from ..autograd import _engine
from ..fx._symbolic_trace import PH, Tracer
from ..fx.graph_module import GraphModule
from ..fx.passes.shape_prop import _extract_tensor_metadata
from ..fx.proxy import Proxy
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..utils import _pytree
from ..utils._python_dispatch import TorchDispatchMode
from . import _classes
from ._stack import NoOverrides, state

__all__ = ["ProxyTorchDispatchMode", "PythonKeyTracer", "current", "make_fx", "refuse", "trace"]

aten = ops.aten
# Ops that are written under another name.
_WRITTEN_AS = {aten.detach.default: aten.alias.default}
# Ops that draw random numbers.
DRAWS = frozenset(
    """normal_ uniform_ random_ bernoulli_ exponential_ cauchy_ geometric_ log_normal_ bernoulli normal multinomial poisson rand_like
    randn_like randint_like""".split()
)
# Ops that give numbers.
_NUMBERS = frozenset(("_local_scalar_dense", "item", "equal", "is_nonzero", "allclose"))


class PythonKeyTracer(Tracer):
    """Writes the graph; parameters and other tensors become attributes of an empty module."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())

    def call_module(self, m: Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The module runs."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """As in `Tracer`; a parameter that the root does not have is put there."""
        if isinstance(a, Parameter):
            name = next((n for n, p in self.root.named_parameters() if p is a), None)
            if name is None:
                name = self.get_fresh_qualname("_param_constant")
                setattr(self.root, name, a)
            node = self.create_node("get_attr", name, (), {})
            node.meta["val"] = _like(a)
            return node
        if isinstance(a, Tensor):
            with _classes.disabled(), NoOverrides():
                node = super().create_arg(a)
            node.meta["val"] = _like(a)
            return node
        return super().create_arg(a)

    @contextlib.contextmanager
    def _patched(self, table: Any) -> Iterator[None]:
        # Nothing of the function is recorded but ops.
        yield


def _like(t: Tensor) -> Any:
    """A tensor of the form of `t` without memory."""
    from .._subclasses.fake_tensor import FakeTensorMode, is_fake

    return t if is_fake(t) else FakeTensorMode.shared().from_tensor(t)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes the ops that it sees to a tracer's graph, and runs them.

    Args:
        tracer: what makes nodes.
        tracing_mode (str): "real" or "fake".
        decompositions (dict): {overload: function}: functions that run in the place of ops.
    """

    def __init__(self, tracer: Any, tracing_mode: str = "real", decompositions: Any = None) -> None:
        super().__init__()
        self.tracer, self.tracing_mode, self.decompositions = tracer, tracing_mode, decompositions or {}
        self.written_as: dict[Any, Any] = _WRITTEN_AS
        self._by_id: dict[int, Any] = {}
        self._by_memory: dict[Any, Any] = {}
        self._kept: list[Any] = []
        # Gradients of nodes of the core by ops, by the keys of `_tape`; in how many transforms of `func`.
        self.formulas: dict[Any, Any] = {}
        self.transforms = 0
        # Hooks of tensors that are no leaves, by the key of the node and the number of its output.
        self.hooks: dict[Any, list[Any]] = {}
        # The values of tensors of one element that do not depend on arguments.
        self._constants: dict[int, Tensor] = {}

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: it belongs to the library."""
        return True

    def track(self, t: Tensor, proxy: Any) -> None:
        """Says which value of the graph a tensor is."""
        self._kept.append(t)
        self._by_id[id(t)] = proxy
        key = _memory(t)
        if key is not None:
            self._by_memory[key] = proxy
        elif _classes.is_wrapper(t):
            t.__dict__["_traced"] = (id(self), proxy)
        if not isinstance(proxy, Proxy):
            return
        proxy.node.meta.setdefault("val", _like(t))
        with _classes.disabled(), NoOverrides():
            proxy.node.meta.setdefault("tensor_meta", _extract_tensor_metadata(t))

    def proxy_of(self, t: Tensor) -> Any:
        """The value of the graph that a tensor is; None where the graph does not compute it."""
        found = self._by_id.get(id(t))
        if found is None and _classes.is_wrapper(t):
            of, proxy = t.__dict__.get("_traced", (0, None))
            return proxy if of == id(self) else None
        return self._by_memory.get(_memory(t)) if found is None else found

    def knows(self, t: Tensor) -> bool:
        """Whether a tensor is a value of the graph."""
        return self.proxy_of(t) is not None or t.numel() == 0

    def _argument(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        proxy = self.proxy_of(value)
        return value if proxy is None else proxy

    def run_backward(
        self, outputs: Any, grads: Any, create: bool, inputs: Any, allow_unused: bool, accumulate: bool
    ) -> Any:
        """A pass of the engine whose ops are seen; NotImplemented where the core is to say what is wrong."""
        if not all(not isinstance(t, Tensor) or t.requires_grad for t in (*outputs, *inputs)):
            return NotImplemented
        from ._tape import run

        return run(self, outputs, grads, create, inputs, allow_unused, accumulate)

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """A block whose ops are not traced."""
        at = state.modes.index(self)
        state.modes.remove(self)
        try:
            yield
        finally:
            state.modes.insert(at, self)

    def aliased(self, t: Tensor) -> Tensor:
        """A view of a whole tensor, which is the same value of the graph, and so are their gradients."""
        proxy = self.proxy_of(t)
        with self.left(), NoOverrides():
            made = t.view_as(t)
        self.formulas[made.grad_fn._sequence_nr(), made.grad_fn.name()] = list
        if proxy is not None:
            self.track(made, proxy)
        return made

    def detached(self, t: Tensor) -> Tensor:
        """A tensor without its history, which is the same value of the graph."""
        proxy = self.proxy_of(t)
        with self.left():
            made = t.detach()
        if proxy is not None:
            self.track(made, proxy)
        return made

    @contextlib.contextmanager
    def inside_transform(self) -> Iterator[None]:
        """A block in which autograd saves results as they are, as PyTorch's `func.grad` shows it."""
        self.transforms += 1
        try:
            yield
        finally:
            self.transforms -= 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Writes a node for the op, and runs it."""
        kwargs = kwargs or {}
        if _C._forward_levels():
            raise NotImplementedError(
                "make_fx: forward-mode derivatives (jvp, jacfwd, hessian) are not traced. Hint: jacrev"
            )
        parts = self.decompositions.get(func)
        if parts is not None:
            with self:
                result = parts(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is aten.lift_fresh.default:
            # The graph copies a tensor of data each time, and so does this run, which may write to it.
            func = aten.lift_fresh_copy.default
        name = func.overloadpacket.__name__
        tensors = [t for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        tracked = [t for t in tensors if self.proxy_of(t) is not None]
        if name in _NUMBERS and func.namespace == "aten":
            return self._number(func, args, kwargs, tracked)
        if func.namespace == "prim":
            return func(*args, **kwargs)
        # Before the op runs: it may write to what its constants are known by.
        given = _pytree.tree_map(self._argument, (args, kwargs))
        target = self.written_as.get(func, func)
        proxy = self.tracer.create_proxy(
            "call_function", target, given[0], given[1], name=self.tracer.graph._target_to_str(target.overloadpacket.__name__)
        )  # fmt: skip
        result = func(*args, **kwargs)
        self._note_writes(func, name, args, proxy)
        self._track_results(result, proxy)
        self._note_constants(func, args, kwargs, tracked, result)
        return result

    def write(self, target: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Writes a node for a call that ran unseen."""
        given = _pytree.tree_map(self._argument, (args, kwargs))
        self._track_results(result, self.tracer.create_proxy("call_function", target, given[0], given[1]))

    def _note_writes(self, func: OpOverload, name: str, args: Any, proxy: Any) -> None:
        writes = func._schema is not None and func._schema.is_mutable
        if writes and name.endswith("_") and not name.endswith("__") and args and isinstance(args[0], Tensor):
            self.track(args[0], proxy)

    def _track_results(self, result: Any, proxy: Any) -> None:
        if isinstance(result, Tensor):
            self.track(result, proxy)
        elif isinstance(result, (list, tuple)):
            proxy.node.meta["val"] = type(result)(_like(t) if isinstance(t, Tensor) else t for t in result)
            for i, t in enumerate(result):
                if isinstance(t, Tensor):
                    self.track(t, proxy[i])
                elif t is None:
                    proxy[i]

    def _note_constants(self, func: Any, args: Any, kwargs: Any, tracked: list[Tensor], result: Any) -> None:
        if not isinstance(result, Tensor) or result.numel() > 1 or _classes.is_wrapper(result):
            return
        fresh = func is aten.lift_fresh_copy.default
        known = [id(t) in self._constants for t in tracked]
        if fresh or (known and all(known) and func.overloadpacket.__name__ not in DRAWS):
            # The tensor itself: writes to it are seen.
            self._constants[id(result)] = result
        elif self._constants:
            # What shares memory with it is none any more either.
            place = result.untyped_storage()._cdata
            for key, t in list(self._constants.items()):
                if t.untyped_storage()._cdata == place:
                    del self._constants[key]

    def _number(self, func: Any, args: Any, kwargs: Any, tracked: list[Tensor]) -> Any:
        if any(id(t) not in self._constants for t in tracked):
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's likely that this "
                "is caused by data-dependent control flow or similar. Hint: sizes and branches of a graph are those of the run that made "
                "it; use torch.where"
            )
        return func(*args, **kwargs)


def _memory(t: Tensor) -> Any:
    """What tensors that are the same elements in the same form share; None where that is not known."""
    if _classes.is_wrapper(t):
        return None
    with _classes.disabled(), NoOverrides():
        try:
            where = t.data_ptr()
        except (RuntimeError, NotImplementedError):
            return None
        return (where, tuple(t.shape), t.stride(), t.dtype, t.is_conj()) if where and t.numel() else None


def current() -> ProxyTorchDispatchMode | None:
    """The mode that traces in this thread; None if there is none."""
    return next((m for m in reversed(state.active()) if isinstance(m, ProxyTorchDispatchMode)), None)


def refuse(what: str, tensors: list[Tensor]) -> None:
    """NotImplementedError where values of the graph would be computed with unseen."""
    mode = current()
    if mode is not None and any(mode.proxy_of(t) is not None for t in tensors):
        raise NotImplementedError(f"make_fx: {what} is not made of ops of ATen that can be traced")


# --- make_fx


def make_fx(f: Callable[..., Any], settings: dict[str, Any]) -> Callable[..., GraphModule]:
    """The function that `torch.fx.experimental.proxy_tensor.make_fx` returns."""
    mode = settings["tracing_mode"]
    if mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f'tracing_mode should be one of real, fake or symbolic, got "{mode}"')
    if mode == "symbolic":
        raise NotImplementedError(
            "make_fx: tracing_mode='symbolic' writes graphs for any sizes, and sizes are numbers here; expected 'real' or 'fake'. "
            "Hint: torch.export.export(..., dynamic_shapes=...) makes graphs whose sizes vary"
        )

    return lambda *args: trace(f, args, settings)


def trace(f: Callable[..., Any], args: tuple[Any, ...], settings: dict[str, Any]) -> GraphModule:
    """The graph of a call. `settings["written_as"]`: ops that are written under another name."""
    _engine.traced = current
    _classes.install()
    tracer = PythonKeyTracer()
    tracer.record_stack_traces = settings.get("record_stack_traces", False)
    blocks = contextlib.ExitStack()
    if settings["tracing_mode"] == "fake":
        from .._subclasses.fake_tensor import FakeTensorMode

        found = next((t.fake_mode for t in _pytree.tree_leaves(args) if hasattr(t, "fake_mode")), None)
        fake = found or FakeTensorMode(allow_non_fake_inputs=settings["_allow_non_fake_inputs"])
        args = _pytree.tree_map(lambda t: fake.from_tensor(t) if isinstance(t, Tensor) else t, args)
        blocks.enter_context(fake)
    mode = ProxyTorchDispatchMode(tracer, settings["tracing_mode"], settings["decomposition_table"])
    mode.written_as = settings.get("written_as", _WRITTEN_AS)
    tracer.proxy_mode = mode
    with blocks:
        graph = tracer.trace(_wrapped(f, args, mode), _pytree.tree_map(lambda _: PH, args))
    return GraphModule(tracer.root, graph, _name(f))


def _name(f: Any) -> str:
    return f.__name__ if hasattr(f, "__name__") else type(f).__name__


def _parameters(f: Any, count: int) -> str:
    """The parameters of the function that is traced: those of `f`, or numbered ones where it takes any."""
    plain = inspect.unwrap(f)
    code = getattr(plain, "__code__", None)
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & stars or code.co_kwonlyargcount or inspect.ismethod(plain):
        return ", ".join(f"arg{i}" for i in range(count))
    names = code.co_varnames[: code.co_argcount]
    if len(names) != count:
        raise RuntimeError(f"Tracing expected {len(names)} arguments but got {count} concrete arguments")
    required = len(names) - len(plain.__defaults__ or ())
    return ", ".join(n if i < required else f"{n}=_defaults[{i - required}]" for i, n in enumerate(names))


def _wrapped(f: Any, args: tuple[Any, ...], mode: ProxyTorchDispatchMode) -> Any:
    """A function of proxies that runs `f` with the arguments that they stand for."""
    leaves, _ = _pytree.tree_flatten(args)

    def run(*proxies: Any) -> Any:
        for value, proxy in zip(leaves, _pytree.tree_leaves(proxies), strict=True):
            if isinstance(value, Tensor):
                mode.track(value, proxy)
        with mode:
            result = f(*args)
        return _pytree.tree_map(lambda v: _returned(v, mode), result)

    text = _parameters(f, len(args))
    names = ", ".join(part.partition("=")[0] for part in text.split(", ")) if text else ""
    defaults = getattr(inspect.unwrap(f), "__defaults__", None)
    return eval(f"lambda {text}: _run({names})", {"_run": run, "_defaults": defaults})


def _returned(value: Any, mode: ProxyTorchDispatchMode) -> Any:
    if not isinstance(value, Tensor):
        return value
    proxy = mode.proxy_of(value)
    return value if proxy is None else proxy
