"""`cpu.amp.autocast`: deprecated for `amp.autocast("cpu")`."""

from __future__ import annotations

import warnings

from ... import amp
from ..._base import bfloat16
from ..._C import dtype as _dtype

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: `amp.autocast("cpu", ..)`."""

    def __init__(self, enabled: bool = True, dtype: _dtype = bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def __dir__() -> list[str]:
    return __all__
