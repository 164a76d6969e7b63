"""Private names of `utils.checkpoint` that libraries use."""

from __future__ import annotations

import importlib
from typing import Any

import rustgrad

from .._base import Tensor
from .checkpoint import DefaultDeviceType

__all__: list[str] = []


def _infer_device_type(*args: Any) -> str:
    """The kind of device of the first tensor, also in lists and dicts, that is not on the CPU; the default kind if none is."""
    from ._pytree import tree_leaves

    kinds = (leaf.device.type for leaf in tree_leaves(args) if isinstance(leaf, Tensor))
    return next((kind for kind in kinds if kind not in ("cpu", "meta")), DefaultDeviceType.get_device_type())


def _get_device_module(device: str = "cuda") -> Any:
    """`torch.cuda` and so on; `torch.device` for the meta device."""
    return rustgrad.device("meta") if device == "meta" else importlib.import_module(f"{rustgrad.__package__}.{device}")


def _settings(kind: str) -> dict[str, Any]:
    return {
        "enabled": rustgrad.is_autocast_enabled(kind),
        "dtype": rustgrad.get_autocast_dtype(kind),
        "cache_enabled": rustgrad.is_autocast_cache_enabled(),
    }


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """(arguments of `autocast` that would set what is set now on a kind of device, and on the CPU)."""
    from ..amp.autocast_mode import is_autocast_available

    return (_settings(device_type) if is_autocast_available(device_type) else None), _settings("cpu")


def _default_meta_extractor(x: Tensor) -> dict[str, Any]:
    """What a recomputed tensor must have in common with the first."""
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}
