"""Settings of cuDNN, which is not available: stored, without effect."""

from __future__ import annotations

import contextlib
import sys

from ._library import stored

enabled = False
benchmark = False
benchmark_limit: int | None = None
deterministic = True
allow_tf32 = False


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> contextlib.AbstractContextManager[None]:
    """The settings in a block: stored, without effect."""
    return stored(
        sys.modules[__name__],
        enabled=enabled,
        benchmark=benchmark,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
    )


def is_available() -> bool:
    """False: there is no CUDA."""
    return False


def version() -> int | None:
    """None: there is no cuDNN."""
    return None
