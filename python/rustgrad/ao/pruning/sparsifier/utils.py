"""Modules by their names, and the parametrization that applies a mask."""

from __future__ import annotations

from typing import Any

from ...._C import Tensor
from ....nn.modules.module import Module
from ....nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = ["FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_contains_param", "module_to_fqn",
           "swap_module"]  # fmt: skip


def module_contains_param(module: Module, parametrization: type[Module]) -> bool:
    """Whether some tensor of a module has a parametrization of that class."""
    lists: Any = module.parametrizations.values() if is_parametrized(module) else ()  # type: ignore[operator, union-attr]
    return any(isinstance(p, parametrization) for found in lists for p in found)


def swap_module(mod: Module, mapping: dict[type[Module], Any]) -> Module:
    """What `mapping[class].from_dense(mod)` makes, with the module's hooks and on its device; the module if it has no entry."""
    target = mapping.get(type_before_parametrizations(mod))
    if target is None:
        return mod
    from ...quantization.utils import _in_place_of

    return _in_place_of(mod, target.from_dense(mod), "swap_module")  # type: ignore[no-any-return]


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The name of a module in a model, or None."""
    return next((name for name, child in model.named_modules(prefix=prefix) if child is module), None)


def fqn_to_module(model: Any, path: str) -> Any:
    """The module or tensor of a name, or None."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """What "a.b.weight" names: `module_fqn`, `module`, `tensor_name` and `tensor_fqn`."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    module = fqn_to_module(model, module_fqn)
    return {"module_fqn": module_fqn, "module": module, "tensor_name": tensor_name, "tensor_fqn": tensor_fqn}


class FakeSparsity(Module):
    """A parametrization: the tensor times a mask of its shape, which no state_dict holds."""

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        return {}
