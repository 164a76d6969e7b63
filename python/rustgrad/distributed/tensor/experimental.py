"""`local_map` by name: there are no tensors that are spread over processes."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["local_map"]


def local_map(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: a function of local parts needs tensors that have them."""
    raise NotImplementedError("distributed.tensor.experimental.local_map: there are no tensors spread over processes")
