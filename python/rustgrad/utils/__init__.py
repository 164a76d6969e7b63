"""`rustgrad.utils`: data loading, determinism, DLPack, hook handles, `swap_tensors`. Submodules load on first use."""

from __future__ import annotations

import copyreg
import importlib
import weakref
from typing import Any

from .. import _C
from .._absent import getattr_of as _getattr_of
from .._C import Tensor

_SUBMODULES = (
    "_foreach_utils",
    "_pytree",
    "backcompat",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "deterministic",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "module_tracker",
    "safetensors",
    "weak",
)
# `tensorboard` is imported by its name: it needs a package that may not be installed.
__all__ = [*(name for name in _SUBMODULES if name[0] != "_"), "set_module", "swap_tensors"]


def set_module(obj: Any, mod: str) -> None:
    """Sets `obj.__module__`, so that the object is displayed as part of that module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swaps two tensors completely: values, history, class, attributes. Both keep their identity,
    so that references to `t1` then see the previous `t2`.

    Raises:
        RuntimeError: a tensor has weak references, other `__slots__` than the other, or is saved in a graph.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    in_graphs = _C._swap_tensors(t1, t2)
    try:
        t1.__class__, t2.__class__ = type(t2), type(t1)
    except TypeError:
        _C._swap_tensors(t1, t2)
        raise
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots:
        _swap_attribute(t1, t2, slot)
    for t, used in zip((t2, t1), in_graphs, strict=True):
        if used:
            _poison(t)


def _swap_attribute(t1, t2, name):
    values = [(hasattr(t, name), getattr(t, name, None)) for t in (t2, t1)]
    for t, (there, value) in zip((t1, t2), values, strict=True):
        if there:
            setattr(t, name, value)
        elif hasattr(t, name):
            delattr(t, name)


def _poison(leaf):
    """Makes backward through existing graphs of the leaf an error: its gradient would go to the swapped tensor."""
    from ..autograd.graph import get_gradient_edge

    def refuse(grads):
        raise RuntimeError(
            "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
            "backward on a tensor that was swapped. For a module m with "
            "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of "
            "the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please "
            "only change the device/dtype before running forward (or after both forward and backward)."
        )

    get_gradient_edge(leaf).node.register_prehook(refuse)


def __getattr__(name: str) -> Any:
    if name == "ThroughputBenchmark":
        return importlib.import_module(f"{__name__}.throughput_benchmark").ThroughputBenchmark
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _elsewhere(name)


_elsewhere = _getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
