"""`rustgrad.compile` and what programs ask and tell the compiler.

A compiled function runs as it is until it is known what it computes; then a plan runs in its place: the same ops in the
same order, gradients and optimizer steps included, without Python. What a plan cannot stand for runs as it is, with one
warning that names the line. `docs/compile.md` says what may be relied on.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _C
from .._absent import getattr_of
from ._watch import PLANS, Unsupported, Watched, everything, here, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._module import OptimizedModule

__all__ = [
    "OptimizedModule",
    "PlanError",
    "Program",
    "Unsupported",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "load",
    "reset",
    "save",
    "set_stance",
    "substitute_in_graph",
]

T = TypeVar("T")
_BACKENDS = ("rustgrad", "eager", "inductor", "aot_eager", "cudagraphs", "onnxrt", "openxla", "tvm")
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "rustgrad",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
) -> Any:
    """A function that does what `model` does, from its fourth call on without running its Python code.

    Args:
        model (Callable): a function, a bound method or a `Module`; without it, a decorator is returned.
        fullgraph (bool): raise `compiler.Unsupported` where calls would have to run as they are.
        dynamic (bool, optional): accepted; a plan for another shape takes two calls in either case.
        backend (str or callable): "rustgrad", or "eager" to change nothing; PyTorch's names mean "rustgrad". A function
            `backend(graph_module, example_inputs)`, or the name that `register_backend` gave it, makes what runs instead of
            plans; see "Backends of programs" in `docs/compile.md`.
        mode (str, optional): one of PyTorch's; there is one quality of plans.
        options (dict, optional): "max_plans", the number of plans kept (16); "passes", the names of those that a plan
            goes through (all; see `docs/compile.md`). A backend of the program is given them.
        name (str, optional): accepted.
        disable (bool): return `model` itself.

    Raises:
        TypeError: `model` is not callable.
        ValueError: an unknown mode or option.
        RuntimeError: an unknown backend; in a call, a backend that raises (`_dynamo.exc.BackendCompilerFailed`).
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile: expected a callable, got {type(model).__name__}")
    if mode not in _MODES:
        raise ValueError(f"Unrecognized mode={mode}, should be one of {', '.join(m for m in _MODES if m)}")
    if disable or getattr(model, "_compile_disabled", False):
        return model
    if backend not in _BACKENDS:
        return _of_backend(model, backend, fullgraph, mode, options)
    known = {"max_plans", "passes"}
    if options and backend == "rustgrad" and not options.keys() <= known:
        raise ValueError(f"compile: unknown options {sorted(options.keys() - known)}; expected {sorted(known)}")
    most, passes = (options or {}).get("max_plans", PLANS), (options or {}).get("passes")
    if passes is not None and not set(passes) <= set(_C._compile_passes()):
        raise ValueError(f"compile: unknown passes in {list(passes)}; expected some of {_C._compile_passes()}")
    on = backend != "eager"
    return _of(model, lambda f: Watched(f, fullgraph, most, on, None if passes is None else list(passes)))


def _of_backend(model, backend, fullgraph, mode, options):
    """`model` compiled by a backend of the program."""
    from ._backends import lookup_backend
    from ._graphs import GraphWatched

    found = lookup_backend(backend)
    given = {**({"mode": mode} if mode not in (None, "default") else {}), **({"options": options} if options else {})}
    return _of(model, lambda f: GraphWatched(f, fullgraph, found, given))


def _of(model, watched):
    from ..nn.modules.module import Module

    if isinstance(model, Module):
        from ._module import optimized

        return optimized(model, lambda m: _compiled(m, watched))
    state = getattr(model, "_compiled_state", None)
    return _compiled(state.function if state is not None else model, watched)


def _compiled(function, watched):
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x3A0:
        raise TypeError("compile: generators and coroutines cannot be compiled")
    state = watched(function)
    mode_entered = _C._is_torch_function_mode_enabled

    def compiled(*args, **kwargs):
        if mode_entered():
            # It sees each call, or makes another one of it.
            return state.call(args, kwargs)
        if state.verify:
            from ._verify import checked

            return checked(state, args, kwargs)
        if not settings.special or (here.stance != "force_eager" and not here.disabled):
            for plan in state.plans:
                result = plan(args, kwargs)
                if result is not plan:
                    state.road = "replay"
                    return result
        return state.call(args, kwargs)

    functools.update_wrapper(compiled, function)
    compiled._compiled_state = state
    compiled._torchdynamo_orig_callable = function
    return compiled


def is_compiling() -> bool:
    """Whether the code is run by a compiled function for which a plan may stand."""
    return here.depth > 0 and not here.disabled and here.stance != "force_eager"


def is_dynamo_compiling() -> bool:
    """Whether the code is run by a compiled function for which a plan may stand."""
    return is_compiling()


def is_exporting() -> bool:
    """Whether the code is run by `onnx.export`."""
    runs = sys.modules.get("rustgrad._recording._runs")
    return runs is not None and runs.is_exporting()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function, never replaced by a plan, nor what it calls if `recursive`; without one, a decorator."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    from ..nn.modules.module import Module

    if isinstance(fn, (type, Module)) or not callable(fn):
        return fn
    function = fn._compiled_state.function if hasattr(fn, "_compiled_state") else fn

    @functools.wraps(function)
    def disabled(*args, **kwargs):
        here.disabled += recursive
        try:
            return function(*args, **kwargs)
        finally:
            here.disabled -= recursive

    disabled.__dict__.pop("_compiled_state", None)
    disabled._compile_disabled = True
    return disabled


def _itself(fn):
    return fn


def allow_in_graph(fn: T) -> T:
    """The function itself."""
    return fn


def assume_constant_result(fn: T) -> T:
    """The function itself."""
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[T], T]:
    """A decorator that returns its function."""
    return _itself


def reset() -> None:
    """Forgets all plans."""
    for state in everything():
        state.reset()


def cudagraph_mark_step_begin() -> None:
    """No effect: there are no CUDA graphs."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of backends, those that programs have registered included, without those that have one of the tags."""
    from ._backends import list_backends

    return list_backends(exclude_tags)


class set_stance(contextlib.ContextDecorator):
    """How compiled functions behave in this thread; a setting, block or decorator.

    "default"; "force_eager": as if nothing were compiled; "eager_on_recompile": a function with plans makes no other
    ones; "fail_on_recompile": it raises RuntimeError where none fits. ValueError for another name than those of PyTorch.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        known = (
            "default",
            "eager_then_compile",
            "aot_eager_then_compile",
            "force_eager",
            "eager_on_recompile",
            "fail_on_recompile",
        )
        if stance not in known:
            raise ValueError(f"set_stance: expected one of {known}, got {stance!r}")
        self.stance = "default" if stance.endswith("then_compile") else stance
        self.previous = here.stance
        here.stance = self.stance

    def __enter__(self) -> None:
        here.stance = self.stance

    def __exit__(self, *error: Any) -> None:
        here.stance = self.previous

    def __call__(self, func: Any) -> Any:
        here.stance = self.previous
        return super().__call__(func)

    def _recreate_cm(self) -> Any:
        again = type(self)(self.stance)
        here.stance = again.previous
        return again


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`explain(f)(*args)` calls the compiled function `f` once and says by which road, with its plans and guards.

    A function that is not compiled is compiled for this answer alone, and called until it has a plan: three times at most.

    Returns:
        Explanation: `road` ("eager", "watched" or "replay"), `plans` (texts), `guards` (texts), `reasons` why calls run as
        they are, `missed` guards; printed, all of these.
    """
    from ._explain import Explanation

    def explained(*args, **kwargs):
        return Explanation(f, args, kwargs)

    return explained(*args, **kwargs) if args or kwargs else explained


def _load(name):
    if name == "OptimizedModule":
        from ._module import OptimizedModule

        return OptimizedModule
    if name in ("PlanError", "Program", "load", "save"):
        from . import _saved

        return getattr(_saved, name)
    return _absent(name)


_absent = getattr_of(__name__)
__getattr__ = _load


def __dir__() -> list[str]:
    return __all__
