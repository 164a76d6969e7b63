"""`make_fx`: the ops that a function runs on given tensors, as a graph."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..._absent import getattr_of
from ..._base import Tensor
from ..._ops import ops
from ...nn.parameter import Parameter
from ...utils import _pytree
from ...utils._python_dispatch import TorchDispatchMode
from .._symbolic_trace import PH, Tracer
from ..graph_module import GraphModule
from ..proxy import Proxy

__all__ = ["PythonKeyTracer", "get_proxy_mode", "make_fx"]

aten = ops.aten
_modes: list[ProxyTorchDispatchMode] = []


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode in which `make_fx` runs a function, or None."""
    return _modes[-1] if _modes else None


class PythonKeyTracer(Tracer):
    """The tracer of `make_fx`: tensors that are no arguments become attributes of the graph's module."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.known: dict[int, tuple[Tensor, Proxy]] = {}

    def call_module(self, m: Any, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What a module does, whatever it is."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The attribute itself."""
        return attr_val

    def proxy_of(self, tensor: Tensor) -> Proxy:
        """The proxy of a tensor."""
        if id(tensor) not in self.known:
            prefix = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
            name = self.get_fresh_qualname(prefix)
            setattr(self.root, name, tensor)
            self.track(tensor, self.create_proxy("get_attr", name, (), {}))
        return self.known[id(tensor)][1]

    def track(self, tensor: Tensor, proxy: Proxy) -> None:
        """Says which proxy stands for a tensor from now on."""
        self.known[id(tensor)] = tensor, proxy

    def proxies(self, value: Any) -> Any:
        """Arguments or results with proxies in the place of tensors."""
        return _pytree.tree_map_only(Tensor, self.proxy_of, value)

    def track_all(self, result: Any, proxy: Proxy) -> None:
        """Says which proxies stand for the results of a call."""
        if isinstance(result, Tensor):
            self.track(result, proxy)
        elif isinstance(result, (tuple, list)):
            for index, item in enumerate(result):
                if isinstance(item, (Tensor, tuple, list)):
                    self.track_all(item, self.create_proxy("call_function", operator.getitem, (proxy, index), {}))


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A mode that runs ops and records them.

    Args:
        tracer (PythonKeyTracer): what records.
        decompositions (dict): op -> a function that is run, and recorded, in its place.
    """

    def __init__(self, tracer: PythonKeyTracer, decompositions: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.tracer, self.decompositions = tracer, decompositions

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self.decompositions:
            with self:
                result = self.decompositions[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is aten.lift_fresh.default:
            # A tensor of data, which the function may write to: the graph makes a copy of it each time.
            args, func = (args[0].detach().clone(),), aten.lift_fresh_copy.default
        given, named = self.tracer.proxies(args), self.tracer.proxies(kwargs)
        result = func(*args, **kwargs)
        proxy = self.tracer.create_proxy("call_function", func, given, named, name=func.overloadpacket.__name__)
        self.tracer.track_all(result, proxy)
        return result


def _parameters(f: Callable[..., Any], count: int) -> list[str]:
    """The names of arguments: those of the function, `arg0`, ... where it has none for each."""
    try:
        kinds = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        kinds = []
    named = [p.name for p in kinds if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return named[:count] if len(named) >= count else [f"arg{i}" for i in range(count)]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
) -> Callable[..., GraphModule]:
    """A function that runs `f` on its arguments and returns the ops that ran, as a graph; those of `backward` and `grad` too.

    Branches and loops are recorded as they ran. Sizes are numbers.

    Args:
        f (callable): takes tensors, and containers of them.
        decomposition_table (dict): op -> a function that is recorded in its place.
        tracing_mode (str): "real", or "fake", which is the same here.

    Raises:
        NotImplementedError: sizes that stay symbols, `tracing_mode="symbolic"`. Hint: `export` has them.
        AssertionError: another mode.
    """
    if tracing_mode == "symbolic":
        raise NotImplementedError("make_fx: sizes are numbers here. Hint: torch.export.export keeps sizes that vary")
    if tracing_mode not in ("real", "fake"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        leaves, tracer, names = _pytree.tree_leaves(args), PythonKeyTracer(), _parameters(f, len(args))

        def run(*given: Any) -> Any:
            for value, proxy in zip(leaves, _pytree.tree_leaves(given), strict=True):
                if isinstance(value, Tensor):
                    tracer.track(value, proxy)
            mode = ProxyTorchDispatchMode(tracer, decomposition_table or {})
            _modes.append(mode)
            try:
                with mode:
                    result = f(*args)
            finally:
                _modes.pop()
            return tracer.proxies(result)

        shown = ", ".join(names)
        called = eval(f"lambda {shown}: run({shown})", {"run": run})
        graph = tracer.trace(called, tuple(_pytree.tree_map(lambda _: PH, a) for a in args))
        return GraphModule(tracer.root, graph, getattr(f, "__name__", type(f).__name__))

    return wrapped


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
