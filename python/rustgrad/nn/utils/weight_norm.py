"""`weight_norm`: a parameter as a direction and a length (Salimans and Kingma, arXiv:1602.07868), by a forward hook."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ..._base import ops
from ..modules.module import Module
from ..parameter import Parameter

_M = TypeVar("_M", bound=Module)

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

_norms, _weight = ops.get("norm_except_dim"), ops.get("_weight_norm")


class WeightNorm:
    """The hook: before each forward it makes the parameter from `name_g`, its lengths, and `name_v`, its direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The parameter from its two parts."""
        return _weight(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Splits a parameter of a module and registers the hook."""
        if any(isinstance(h, WeightNorm) and h.name == name for h in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(_norms(weight, 2, fn.dim).data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Recombines the parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: _M, name: str = "weight", dim: int | None = 0) -> _M:
    """Replaces the parameter `name` by `name_g`, its length along `dim` (None: as a whole), and `name_v`, its direction.

    Returns:
        The module. Deprecated in PyTorch for `parametrizations.weight_norm`.

    Raises:
        RuntimeError: the parameter already has weight norm.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=1,  # this line, as in PyTorch: a model that calls it for each of its layers is told once
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: _M, name: str = "weight") -> _M:
    """Recombines a parameter split by `weight_norm`; returns the module.

    Raises:
        ValueError: there is no such hook.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
