"""What sparsifiers share: the groups of tensors, their masks, and the state."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

from ...._C import ops
from ....autograd.grad_mode import no_grad
from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.utils import parametrize
from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, module_to_fqn, swap_module

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES: set[type[Module]] = {Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(abc.ABC):
    """A class derived from it defines `update_mask(module, tensor_name, **options)`, which changes a mask.

    Args:
        defaults (dict): options of tensors whose configuration lacks them.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict[str, Any]] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.groups):
            text += f"\n\tGroup {i}\n\t    module: {group['module']}\n"
            text += "".join(f"\t    {key}: {group[key]}\n" for key in sorted(group) if key != "module")
        return text + ")"

    def state_dict(self) -> dict[str, Any]:
        """`state`, with the masks by the names of tensors, and `groups`, without modules."""
        groups = [{k: v for k, v in group.items() if k not in KEYS_NOT_IN_STATE_DICT} for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Takes over a state, and its masks into the model.

        Raises:
            RuntimeError: `strict`, and the model lacks a module.
        """
        groups, states = copy.deepcopy(state_dict["groups"]), state_dict["state"]
        for name, state in states.items():
            info = get_arg_info_from_tensor_fqn(self.model, name)
            module, tensor_name = info["module"], info["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {name} into the model")
            attached = module.parametrizations[tensor_name] if parametrize.is_parametrized(module, tensor_name) else ()
            mask = next((p for p in attached if isinstance(p, FakeSparsity)), None)
            if mask is None:
                mask = FakeSparsity(ops["ones"](getattr(module, tensor_name).shape))
                parametrize.register_parametrization(module, tensor_name, mask)
            if state.get("mask") is not None:
                mask.mask = state.pop("mask")
            for group in groups:
                if group["tensor_fqn"] == name:
                    group.update(info)
        self.__setstate__({"state": states, "groups": groups})

    def make_config_from_model(self, model: Module, SUPPORTED_MODULES: set[type[Module]] = SUPPORTED_MODULES) -> None:
        """Chooses the weights of all linear layers."""
        self.config: Any = []
        stack = [model]
        while stack:
            for child in stack.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    stack.append(child)

    def prepare(self, model: Module, config: list[dict[str, Any]] | None) -> None:
        """Attaches masks of ones to tensors of a model, in place.

        Args:
            model (Module): the model.
            config (list of dict): for each tensor its name, `tensor_fqn`, and options. None: all linear layers.
        """
        self.model, self.config = model, config
        if config is None:
            self.make_config_from_model(model)
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError(
                    "config elements should be dicts not modules i.e.:[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"
                )
            options = {**copy.deepcopy(self.defaults), **given}
            name = options.get("tensor_fqn")
            if name is None:
                raise AssertionError(
                    "tensor_fqn is a required argument in the sparsity config which replaces previous `module` and "
                    "[module]`fqn` arguments"
                )
            info = get_arg_info_from_tensor_fqn(model, name)
            for key, value in info.items():
                if key in options and options[key] != value:
                    raise AssertionError(
                        f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!"
                    )
            self.groups.append({**options, **info})
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask", ops["ones_like"](getattr(module, name)).detach())
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(module, name, group.get("parametrization", FakeSparsity)(mask))

    def squash_mask(
        self,
        params_to_keep: tuple[str, ...] | None = None,
        params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Multiplies the tensors with their masks for good, and removes these.

        Args:
            params_to_keep (tuple of str): options that each module keeps, as a dict `sparse_params`.
            params_to_keep_per_layer (dict): further ones, by the name of the module.
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            kept = (*(params_to_keep or ()), *(params_to_keep_per_layer or {}).get(group["module_fqn"], ()))
            if kept:
                module.sparse_params = {k: group[k] for k in kept}

    def convert(
        self,
        module: Module,
        mapping: dict[type[Module], Any] | None = None,
        inplace: bool = False,
        parameterization: type[Module] = FakeSparsity,
    ) -> Module:
        """Replaces the submodules with masks by what `mapping[class].from_dense` makes of them.

        Raises:
            NotImplementedError: no mapping.
        """
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in list(module.named_children()):
            known = parametrize.type_before_parametrizations(child) in mapping
            if known and module_contains_param(child, parameterization):
                module._modules[name] = swap_module(child, mapping)
            else:
                module._modules[name] = self.convert(child, mapping, True, parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Chooses all masks anew."""
        if self.enable_mask_update:
            with no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: Module, tensor_name: str, **kwargs: Any) -> None:
        """Changes the mask of a tensor; the options of its group are the other arguments."""
