"""Rules for tensors that are spread over processes, of which there are none: what is registered is kept out of the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["local_map", "register_sharding"]


def local_map(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: a function of local parts needs tensors that have them."""
    raise NotImplementedError("distributed.tensor.experimental.local_map: there are no tensors spread over processes")


def register_sharding(op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function as it is. Nothing would ask it how an op is spread."""
    return lambda function: function
