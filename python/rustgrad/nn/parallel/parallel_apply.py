"""Calls of several modules, each with its own input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base import Tensor
from ..._typing import DeviceLike
from ..modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in nested lists, tuples and dicts; None where there is none."""
    if isinstance(obj, Tensor):
        return obj
    inner = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    return next((found for found in map(get_a_var, inner) if found is not None), None)


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[int | DeviceLike | None] | None = None,
) -> list[Any]:
    """Calls each module with its own input. Devices work side by side, since calls return before the work is done.

    Args:
        modules (sequence of Module): what is called.
        inputs (sequence): for each module a tuple or list of arguments, or its only argument.
        kwargs_tup (sequence of dict, optional): keyword arguments for each module.
        devices (sequence, optional): accepted; ops run where their tensors are.

    Raises:
        AssertionError: sequences of different lengths.
    """
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    for name, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if given is not None and len(given) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {name} {len(given)}"
            )
    calls = zip(modules, inputs, kwargs_tup, strict=True)
    return [m(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs) for m, given, kwargs in calls]


def __dir__() -> list[str]:
    return __all__
