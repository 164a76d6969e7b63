"""The device of tensors that a block or function makes: `DeviceContext`, `set_device`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import device as _device
from ._contextlib import context_decorator

__all__: list[str] = []

# The device of the innermost `DeviceContext`.
CURRENT_DEVICE: Any = None


class DeviceContext:
    """A block in which tensors are made on a device, as in `with torch.device(..)`."""

    def __init__(self, device: Any) -> None:
        self.device = _device(device)
        self._outer: list[Any] = []

    def __enter__(self) -> DeviceContext:
        global CURRENT_DEVICE
        block = _device(self.device)
        block.__enter__()
        self._outer.append((block, CURRENT_DEVICE))
        CURRENT_DEVICE = self.device
        return self

    def __exit__(self, *error: Any) -> None:
        global CURRENT_DEVICE
        block, CURRENT_DEVICE = self._outer.pop()
        block.__exit__(*error)


def device_decorator(device: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls make tensors on a device, or a generator whose turns do."""
    return context_decorator(lambda: DeviceContext(device), func)


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator of functions that make tensors on a device."""
    return lambda func: device_decorator(_device(device), func)
