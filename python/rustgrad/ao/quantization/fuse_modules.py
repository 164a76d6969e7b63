"""Fusion of modules that follow each other, such as a convolution, batch norm and relu, into one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ...nn.modules.linear import Identity
from ...nn.modules.module import Module
from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def _get_module(model: Module, submodule_key: str) -> Module:
    """The submodule at a path."""
    for token in submodule_key.split("."):
        model = getattr(model, token)
    return model


def _set_module(model: Module, submodule_key: str, module: Module) -> None:
    """Puts a module at a path."""
    path, _, name = submodule_key.rpartition(".")
    setattr(_get_module(model, path) if path else model, name, module)


def fuse_known_modules(
    mod_list: list[Any], is_qat: bool, additional_fuser_method_mapping: dict[Any, Any] | None = None
) -> list[Any]:
    """The modules that take the places of some: the fused one, then `Identity`.

    Raises:
        NotImplementedError: no rule for modules of these classes.
    """
    types = tuple(map(_class_of, mod_list))
    fuser = get_fuser_method(types, additional_fuser_method_mapping)
    if fuser is None:
        raise NotImplementedError(f"Cannot fuse modules: {types}")
    fused = fuser(is_qat, *mod_list)
    # Hooks before the first module and after the last one are those of the fused one.
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    made: list[Any] = [fused]
    for _ in mod_list[1:]:
        identity = Identity()
        identity.training = mod_list[0].training
        made.append(identity)
    return made


def _class_of(module):
    from ...nn.utils.parametrize import type_before_parametrizations

    return type_before_parametrizations(module)


def _fuse_modules_helper(model, modules_to_fuse, is_qat, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    additional = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    found = [_get_module(model, name) for name in modules_to_fuse]
    for name, module in zip(modules_to_fuse, fuser_func(found, is_qat, additional), strict=True):
        _set_module(model, name, module)


def _fuse_modules(
    model, modules_to_fuse, is_qat, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None
):  # fmt: skip
    if not inplace:
        model = copy.deepcopy(model)
    groups = [modules_to_fuse] if all(isinstance(name, str) for name in modules_to_fuse) else modules_to_fuse
    for names in groups:
        _fuse_modules_helper(model, names, is_qat, fuser_func, fuse_custom_config_dict)
    return model


def fuse_modules(
    model: Module, modules_to_fuse: list[Any], inplace: bool = False, fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Module:  # fmt: skip
    """Fuses modules of a model that is in `eval` mode.

    Args:
        modules_to_fuse (list): names of modules that follow each other, or lists of such names: (conv, bn), (conv, bn, relu),
            (conv, relu), (linear, relu), (bn, relu), ...
        inplace (bool): changes the model itself.
        fuser_func (callable): makes the fused modules of a list.
        fuse_custom_config_dict (dict, optional): with "additional_fuser_method_mapping".

    Returns:
        The model; the first module of each list is the fused one, the others are `Identity`.
    """
    return _fuse_modules(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Module, modules_to_fuse: list[Any], inplace: bool = False, fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Module:  # fmt: skip
    """Fuses modules of a model that is in `train` mode: see `fuse_modules`."""
    return _fuse_modules(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)


def __dir__() -> list[str]:
    return __all__
