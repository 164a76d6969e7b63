"""States of optimizers by names of parameters: made before the first step, and flat ones."""

from __future__ import annotations

from typing import Any

from ..._base import Tensor
from ...optim.lbfgs import LBFGS
from ...optim.optimizer import Optimizer


def filled(optimizer: Optimizer) -> None:
    """Makes the states of an optimizer that has made no step, by one with a rate and gradients of zero.

    Nothing is done where there are gradients already, or where a step needs a closure.
    """
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or isinstance(optimizer, LBFGS) or any(p.grad is not None for p in params):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    try:
        for param in params:
            if param.requires_grad:
                param.grad = param.detach().new_zeros(param.shape)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = rate.new_zeros(()) if isinstance(rate, Tensor) else 0.0
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)


def flattened(state: dict[str, Any]) -> dict[str, Any]:
    """States and groups under names such as `state.fc.weight.exp_avg` and `param_groups.fc.weight.lr`.

    Raises:
        NotImplementedError: a state has a value that is no tensor and no number.
    """
    made: dict[str, Any] = {}
    for name, values in state["state"].items():
        for key, value in values.items():
            if not isinstance(value, (Tensor, int, float, bool, str)) and value is not None:
                raise NotImplementedError(
                    f"flatten_optimizer_state_dict: state.{name}.{key} is a {type(value).__name__}; expected a tensor or a number."
                )
            made[f"state.{name}.{key}"] = value
    for group in state["param_groups"]:
        for name in group["params"]:
            made |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return made


def is_flat(state: dict[str, Any]) -> bool:
    """Whether a state dict of an optimizer is flat."""
    return "state" not in state and any(key.startswith(("state.", "param_groups.")) for key in state)


def nested(flat: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """States and groups of what `flattened` returned: a group of its own for each parameter.

    Args:
        names (set): of the parameters of the model.
    """
    state: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    for full, value in flat.items():
        kind, _, rest = full.partition(".")
        name, _, key = rest.rpartition(".")
        if name not in names:
            continue  # of a parameter that the model has not, such as one of another stage
        if kind == "state":
            state.setdefault(name, {})[key] = value
        else:
            groups.setdefault(name, {"params": [name]})[key] = value
    return {"state": state, "param_groups": list(groups.values())}
