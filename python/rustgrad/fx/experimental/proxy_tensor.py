"""`make_fx`: the ops of ATen that a function runs, as a graph; and the question whether calls are being traced so."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..._absent import getattr_of

__all__ = ["disable_proxy_modes_tracing", "get_proxy_mode", "make_fx"]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
) -> Callable[..., Any]:
    """A function of the arguments of `f` that runs it and returns the `GraphModule` of its ops.

    Calls of autograd inside are part of the graph. Numbers among the arguments, sizes and branches are those of the run.

    Args:
        f (callable): a function or module of tensors and containers of them.
        decomposition_table (dict): {overload: function of its arguments} that runs, and is traced, in the place of the op.
        tracing_mode (str): "real", or "fake": without elements, on fake tensors.
        record_stack_traces (bool): whether nodes say which lines called them.

    Raises:
        RuntimeError: `f` reads an element of what depends on its arguments.
        NotImplementedError: `tracing_mode` is "symbolic", or `pre_dispatch`; or `f` uses what is no op of ATen, or a gradient that
            is not made of such ops, or `vmap` or `jvp`.
    """
    if pre_dispatch:
        raise NotImplementedError("make_fx: pre_dispatch=True is not here; expected False. Hint: torch.export.export")
    from ..._dispatch import _tracing

    settings = {
        "decomposition_table": decomposition_table,
        "tracing_mode": tracing_mode,
        "_allow_non_fake_inputs": _allow_non_fake_inputs,
        "record_stack_traces": record_stack_traces,
    }
    return _tracing.make_fx(f, settings)


def get_proxy_mode() -> Any:
    """The mode that traces the calls of this thread: None if there is none."""
    loaded = sys.modules.get("rustgrad._dispatch._tracing")
    return None if loaded is None else loaded.current()


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[Any]:
    """A block whose ops are not traced; yields the mode that it leaves."""
    mode = get_proxy_mode()
    if mode is None:
        yield None
        return
    with mode.left():
        yield mode


_MOVED = ("ProxyTorchDispatchMode", "PythonKeyTracer")
_absent = getattr_of(__name__)


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        from ..._dispatch import _tracing

        return getattr(_tracing, name)
    return _absent(name)
