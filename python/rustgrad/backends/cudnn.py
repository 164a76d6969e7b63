"""Settings of cuDNN, which is not available: stored, without effect."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace

from ._library import stored

enabled = False
benchmark = False
benchmark_limit: int | None = None
deterministic = True
allow_tf32 = False
fp32_precision = "none"
conv: SimpleNamespace = SimpleNamespace(fp32_precision="none")
rnn: SimpleNamespace = SimpleNamespace(fp32_precision="none")


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
        fp32_precision=fp32_precision,
    )


def is_available() -> bool:
    """False: there is no CUDA."""
    return False


def version() -> int | None:
    """None: there is no cuDNN."""
    return None
