"""State dicts of a model and its optimizers in which parameters go by their names in the model.

An optimizer's own state dict counts its parameters; by name it survives another order of the groups, and wrappers such as
`DistributedDataParallel` and compiled modules leave no trace in names.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._base import Tensor
from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer
from ._optimizer_states import filled as _init_optim_state
from ._optimizer_states import flattened, is_flat, nested
from ._sent import from_first

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

PrimitiveType = Any
ValueType = Any
DictValueType = dict[str, Any]
ListDictValueType = list[dict[str, Any]]
OptimizerStateType = dict[str, Any]
FQNS_T = set[str]


@dataclass
class StateDictOptions:
    """What the functions of this module take beside their arguments.

    Args:
        full_state_dict (bool): whole tensors, which all are here. With `cpu_offload` only rank 0 gets them, others an empty dict.
        cpu_offload (bool): tensors of what is returned are copied to the CPU.
        ignore_frozen_params (bool): leave out parameters of the model that do not require grad.
        keep_submodule_prefixes (bool): whether names of `submodules` begin with their place in the model.
        strict (bool): whether the names must be those of the model, as in `load_state_dict`; also of the optimizer's states.
        broadcast_from_rank0 (bool): what rank 0 is given is loaded on all ranks; needs `full_state_dict`.
        flatten_optimizer_state_dict (bool): an optimizer's state dict is flat: `state.fc.weight.exp_avg`,
            `param_groups.fc.weight.lr`. Either form is loaded.
        dsd_fqn_modifiers (str): accepted.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _is_wrapper(module, part):
    """Whether a name's part is that of a wrapper, which is left out."""
    if part == "_orig_mod":
        return True
    return part == "module" and type(module).__name__ == "DistributedDataParallel"


def _get_fqns(
    model: Module,
    name: str,
    dsd_fqn_modifiers: str = "_fqn_modifiers",
    skip_ddp_prefix: bool = True,
    skip_compiler_prefix: bool = True,
) -> set[str]:
    """The name of a parameter or buffer without those of wrappers, as a set of one."""
    parts, here = [], model
    for part in name.split("."):
        skipped = _is_wrapper(here, part) and (skip_compiler_prefix if part == "_orig_mod" else skip_ddp_prefix)
        if not skipped:
            parts.append(part)
        here = here._modules.get(part) if isinstance(here, Module) else None
    return {".".join(parts)}


def _bare(model, name):
    return _get_fqns(model, name).pop()


def _checked(options):
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


class _Names(dict):
    """id of each parameter of a model -> its name."""

    def __missing__(self, key):
        raise KeyError("state_dict: a parameter of the optimizer is none of the model's")


def _names(model):
    return _Names((id(p), _bare(model, n)) for n, p in model.named_parameters(remove_duplicate=False))


def _rank():
    from .. import get_rank, is_available, is_initialized

    return get_rank() if is_available() and is_initialized() else 0


def _given(state, options):
    """A state dict as it is returned: on the CPU, on rank 0 alone, as is asked."""
    if options.full_state_dict and options.cpu_offload and _rank() != 0:
        return {}
    return _offloaded(state) if options.cpu_offload else state


def _offloaded(value):
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {k: _offloaded(v) for k, v in value.items()}
    return [_offloaded(v) for v in value] if isinstance(value, list) else value


def _each(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    found = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    if not found:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    return found


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model, or the part of some of its submodules, without the names of wrappers.

    Args:
        model (Module): the model.
        submodules (set of Module): those whose parameters and buffers are returned; all by default.
        options (StateDictOptions): see there.
    """
    options = _checked(options)
    frozen = {n for n, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
    inside = [""] if submodules is None else [f"{n}." if n else "" for n, m in model.named_modules() if m in submodules]
    found = {}
    for name, value in model.state_dict().items():
        prefix = next((p for p in inside if name.startswith(p)), None)
        if prefix is None or (options.ignore_frozen_params and name in frozen):
            continue
        kept = options.keep_submodule_prefixes or submodules is None
        found[_bare(model, name) if kept else name.removeprefix(prefix)] = value
    return _given(found, options)


def _with_prefixes(model, state):
    """A state dict of submodules, by module, as one of the model."""
    if not state or not isinstance(next(iter(state)), Module):
        return state
    warnings.warn(
        "Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]`` is deprecated; expected names of the model.",
        FutureWarning,
        stacklevel=3,
    )
    places = {m: n for n, m in model.named_modules()}
    return {
        _bare(model, ".".join(filter(None, (places[module], name)))): value
        for module, values in state.items()
        for name, value in values.items()
    }


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads what `get_model_state_dict` returned; parameters on the meta device become what is loaded.

    Args:
        model (Module): the model.
        model_state_dict (dict): values by name; of submodules, by module, too.
        options (StateDictOptions): see there.

    Returns:
        The names that did not match, if not `strict`.

    Raises:
        RuntimeError: names or shapes do not match.
    """
    options = _checked(options)
    state = _with_prefixes(model, model_state_dict)
    if options.broadcast_from_rank0:
        state = from_first(state)
    own = model.state_dict()
    names = {_bare(model, name): name for name in own}
    values = {names.get(name, name): value for name, value in state.items()}
    assign = any(isinstance(t, Tensor) and t.is_meta for t in own.values())
    return model.load_state_dict(values, strict=options.strict, assign=assign)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states and groups of optimizers, with parameters by their names in the model.

    An optimizer that has made no step yet is given its states, as by a step with a rate and gradients of zero: so there are
    tensors to load into.

    Args:
        model (Module): the model.
        optimizers (Optimizer or several): its optimizers.
        submodules (set of Module): those whose parameters' states are returned; all by default.
        options (StateDictOptions): see there.

    Raises:
        KeyError: a parameter of an optimizer is none of the model.
    """
    options, names = _checked(options), _names(model)
    inside = None if submodules is None else {id(p) for m in submodules for p in m.parameters()}
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _each(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            params = [p for p in group["params"] if inside is None or id(p) in inside]
            groups.append(
                {**{k: v for k, v in group.items() if k != "params"}, "params": [names[id(p)] for p in params]}
            )
            state.update({names[id(p)]: dict(optimizer.state[p]) for p in params if p in optimizer.state})
    made = {"state": state, "param_groups": groups}
    return _given(flattened(made) if options.flatten_optimizer_state_dict else made, options)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads what `get_optimizer_state_dict` returned, flat or not.

    Args:
        model (Module): the model.
        optimizers (Optimizer or several): its optimizers.
        optim_state_dict (dict): the states. A group's options are those of the group that has its first parameter.
        options (StateDictOptions): see there.

    Raises:
        RuntimeError: there are no states, or `strict` and a parameter that needs one has none.
    """
    options, names = _checked(options), _names(model)
    if options.broadcast_from_rank0:
        optim_state_dict = from_first(optim_state_dict)
    if is_flat(optim_state_dict):
        optim_state_dict = nested(optim_state_dict, set(names.values()))
    if not optim_state_dict:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load but optim state_dict is empty. "
            f"{optim_state_dict}"
        )
    saved, found = optim_state_dict.get("state", {}), {}
    for group in optim_state_dict["param_groups"]:
        found.update(dict.fromkeys(group["params"], group))
    for optimizer in _each(optimizers):
        _init_optim_state(optimizer)
        optimizer.load_state_dict(_numbered(optimizer, names, saved, found, options.strict))


def _numbered(optimizer, names, saved, groups, strict):
    """The state dict of an optimizer, which counts its parameters."""
    state: dict[int, Any] = {}
    made, counter = [], itertools.count()
    for group in optimizer.param_groups:
        numbers = []
        for param in group["params"]:
            name = names[id(param)]
            numbers.append(next(counter))
            if name in saved:
                state[numbers[-1]] = saved[name]
            elif param in optimizer.state:
                if strict and param.requires_grad:
                    raise RuntimeError(
                        f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients but "
                        "has no saved optimizer state. To load anyway, use StateDictOptions(strict=False)."
                    )
                state[numbers[-1]] = optimizer.state[param]
        first = names[id(group["params"][0])] if group["params"] else None
        made.append({**group, **groups.get(first, {}), "params": numbers})
    return {"state": state, "param_groups": made}


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`; the latter is empty without optimizers."""
    optimizers = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    own = get_model_state_dict(model, submodules=submodules, options=options)
    if not optimizers:
        return own, {}
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
    optimizers = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    keys = set_model_state_dict(model, model_state_dict, options=options)
    if optimizers:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys


def __dir__() -> list[str]:
    return __all__
