"""State dicts of a model and its optimizers in which parameters go by their names in the model, for one process.

An optimizer's own state dict counts its parameters; by name it survives another order of the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..._base import Tensor
from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """What the functions of this module take beside their arguments; sharding has no meaning for one process.

    Args:
        cpu_offload (bool): tensors of what is returned are copied to the CPU.
        ignore_frozen_params (bool): leave out parameters that do not require grad.
        strict (bool): whether the names must be those of the model, as in `load_state_dict`.
        full_state_dict, broadcast_from_rank0, keep_submodule_prefixes, flatten_optimizer_state_dict (bool): as in
            PyTorch; only flattened optimizers are refused.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _bare(name: str) -> str:
    """The name without those of wrappers."""
    return ".".join(part for part in name.removeprefix("module.").split(".") if part != "_orig_mod")


def _known(model, options):
    options = options or StateDictOptions()
    if options.flatten_optimizer_state_dict:
        raise NotImplementedError("state_dict: flattened states of optimizers are not here; expected nested ones.")
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    wrapped = hasattr(model, "module") and next(iter(model._modules), None) == "module"
    return options, {id(p): _bare(n) if wrapped else n for n, p in model.named_parameters(remove_duplicate=False)}


def _offloaded(value, options):
    if isinstance(value, Tensor):
        return value.cpu() if options.cpu_offload else value
    if isinstance(value, dict):
        return {k: _offloaded(v, options) for k, v in value.items()}
    return value


def _each(optimizers: Optimizer | Iterable[Optimizer]) -> Iterator[Optimizer]:
    yield from (optimizers,) if isinstance(optimizers, Optimizer) else optimizers


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model, or the part of some of its submodules, without the names of wrappers."""
    options, _ = _known(model, options)
    frozen = {n for n, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    inside = [n for n, m in model.named_modules() if submodules is None or m in submodules]
    found = {}
    for name, value in model.state_dict().items():
        if options.ignore_frozen_params and name in frozen:
            continue
        if submodules is None or any(name.startswith(f"{n}.") for n in inside):
            found[_bare(name)] = _offloaded(value, options)
    return found


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads what `get_model_state_dict` returned; parameters on the meta device become what is loaded."""
    options, _ = _known(model, options)
    own = model.state_dict()
    names = {_bare(name): name for name in own}
    values = {names.get(name, name): value for name, value in model_state_dict.items()}
    assign = any(isinstance(t, Tensor) and t.is_meta for t in own.values())
    return model.load_state_dict(values, strict=options.strict, assign=assign)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states and groups of optimizers, with parameters by their names in the model."""
    options, names = _known(model, options)
    inside = None if submodules is None else {id(p) for m in submodules for p in m.parameters()}
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _each(optimizers):
        for group in optimizer.param_groups:
            params = [p for p in group["params"] if inside is None or id(p) in inside]
            groups.append({**group, "params": [names[id(p)] for p in params]})
            state.update(
                {names[id(p)]: _offloaded(dict(optimizer.state[p]), options) for p in params if p in optimizer.state}
            )
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads what `get_optimizer_state_dict` returned. KeyError for a parameter that has no group in it."""
    options, names = _known(model, options)
    groups = {name: group for group in optim_state_dict["param_groups"] for name in group["params"]}
    for optimizer in _each(optimizers):
        state: dict[int, Any] = {}
        loaded, count = [], 0
        for group in optimizer.param_groups:
            ids = range(count, count + len(group["params"]))
            fqns = [names[id(p)] for p in group["params"]]
            count += len(fqns)
            state.update(
                {
                    i: optim_state_dict["state"][n]
                    for i, n in zip(ids, fqns, strict=True)
                    if n in optim_state_dict["state"]
                }
            )
            saved = groups[fqns[0]] if fqns else group
            loaded.append({**saved, "params": list(ids)})
        optimizer.load_state_dict({"state": state, "param_groups": loaded})


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    own = get_model_state_dict(model, submodules=submodules, options=options)
    return own, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """`set_model_state_dict` and `set_optimizer_state_dict`; returns the names that did not match."""
    keys = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys


def __dir__() -> list[str]:
    return __all__
