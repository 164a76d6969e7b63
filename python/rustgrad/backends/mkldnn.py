"""Intel's oneDNN, which is not used: matrix products and convolutions are rustgrad's own."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace

from ._library import Verbose as verbose
from ._library import stored

VERBOSE_OFF: int = 0
VERBOSE_ON: int = 1
enabled: bool = False
deterministic: bool = True
allow_tf32: bool = False
fp32_precision: str = "none"
conv: SimpleNamespace = SimpleNamespace(fp32_precision="none")
matmul: SimpleNamespace = SimpleNamespace(fp32_precision="none")
rnn: SimpleNamespace = SimpleNamespace(fp32_precision="none")

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "allow_tf32", "deterministic", "enabled", "flags", "is_available", "verbose"]


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> contextlib.AbstractContextManager[None]:
    """The settings in a block: stored, without effect."""
    return stored(sys.modules[__name__], enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)


def is_available() -> bool:
    """False: the library is not used."""
    return False
