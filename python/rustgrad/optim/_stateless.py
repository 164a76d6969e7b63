"""A block in which an optimizer works on other parameters, with other state."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .._base import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


def _check_state(state):
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state "
            f"dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")


def _check_group(number, group, given):
    if not isinstance(given, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    ids = given.get("params")
    if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter ids."
        )
    if len(group["params"]) != len(ids):
        raise RuntimeError(
            f"swapin_optim_state param group {number} has a different number of params than the live optimizer param group."
        )
    if given.keys() != group.keys():
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer group keys "
            f"for group {number}. Keys only in swap-in: {[k for k in given if k not in group]}. "
            f"Keys only in live: {[k for k in group if k not in given]}."
        )


def _check(optimizer, parameters, given):
    """The ids of parameters in the groups of `given`, in order."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(given, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    _check_state(given.get("state"))
    groups = given.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
            f"{type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for number, (group, one) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        _check_group(number, group, one)
    ids = [i for group in groups for i in group["params"]]
    if len(parameters) < len(ids):
        raise RuntimeError(f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
    extra = [key for key in given["state"] if key not in ids]
    if extra:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    return ids


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """A block in which `optimizer` has other parameters, state and options; what it had comes back afterwards.

    Args:
        optimizer (Optimizer): with state: after a first step.
        swapin_parameters (dict): tensors in the order of its parameters.
        swapin_optim_state (dict): what `optimizer.state_dict()` gives. Its tensors are changed in place, the dict is not.

    Raises:
        RuntimeError: the optimizer has no state, or the dict does not fit it.
    """
    ids = _check(optimizer, swapin_parameters, swapin_optim_state)
    state, groups = optimizer.state, optimizer.param_groups
    before = [dict(group) for group in groups]
    tensors = list(swapin_parameters.values())
    saved = swapin_optim_state["state"]
    try:
        optimizer.state = defaultdict(dict, {t: dict(saved.get(i, {})) for t, i in zip(tensors, ids, strict=False)})
        rest = iter(tensors)
        for group, given in zip(groups, swapin_optim_state["param_groups"], strict=True):
            group.update({k: v for k, v in given.items() if k != "params"})
            group["params"] = [next(rest) for _ in given["params"]]
        yield
    finally:
        for group, contents in zip(groups, before, strict=True):
            group.clear()
            group.update(contents)
        optimizer.state = state


def __dir__() -> list[str]:
    return __all__
