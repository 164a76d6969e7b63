"""`rustgrad.cuda.nvtx`: ranges for NVIDIA's profiler, which is not here; as in a build of PyTorch without CUDA, they refuse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """RuntimeError: there is no NVTX."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build? Hint: use rustgrad.profiler.")


mark = range_end = range_pop = range_push = range_start = _refuse


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """`with range("name"):` RuntimeError, there is no NVTX."""
    range_push(msg.format(*args, **kwargs))
    yield


def __dir__() -> list[str]:
    return __all__
