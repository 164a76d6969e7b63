"""The device of tensors that a block or function makes: `DeviceContext`, `set_device`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._base import device as _device
from .._base import get_default_device

__all__: list[str] = []


class DeviceContext:
    """A block in which tensors are made on a device, as in `with torch.device(..)`."""

    def __init__(self, device: Any) -> None:
        self.device = _device(device)
        self._inner: list[Any] = []

    def __enter__(self) -> DeviceContext:
        block = _device(self.device)
        block.__enter__()
        self._inner.append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        self._inner.pop().__exit__(*error)


def device_decorator(device: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls make tensors on a device."""

    @functools.wraps(func)
    def called(*args: Any, **kwargs: Any) -> Any:
        with DeviceContext(device):
            return func(*args, **kwargs)

    return called


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator of functions that make tensors on a device."""
    return lambda func: device_decorator(_device(device), func)


def __getattr__(name: str) -> Any:
    if name == "CURRENT_DEVICE":
        # None while the default is the CPU, as before any call of `set_default_device`.
        current = get_default_device()
        return None if current.type == "cpu" else current
    from .._absent import absent

    raise absent(__name__, name)
