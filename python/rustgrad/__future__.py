"""How `Module.to`, `Module.float` and similar methods replace parameters: behaviour that may become the default."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether a conversion puts new parameters into the module instead of new data into its parameters."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether a conversion puts new parameters into the module. Default: False."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether a conversion, and `load_state_dict`, swaps whole parameters by `utils.swap_tensors`."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether a conversion swaps whole parameters. Default: False."""
    return _swap
