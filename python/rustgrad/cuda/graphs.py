"""`rustgrad.cuda.graphs`: the names of recorded graphs, which there are none of; all are in `rustgrad.cuda` too."""

from __future__ import annotations

from . import (
    CUDAGraph,
    graph,
    is_current_stream_capturing,
)

__all__ = [
    "CUDAGraph",
    "graph",
    "is_current_stream_capturing",
]


def __dir__() -> list[str]:
    return __all__
