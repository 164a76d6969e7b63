"""`cuda.amp.autocast`: deprecated for `amp.autocast("cuda")`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import amp
from ..._base import float16
from ..._C import dtype as _dtype

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """Deprecated: `amp.autocast("cuda", ..)`."""

    def __init__(self, enabled: bool = True, dtype: _dtype = float16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def _deprecated(name):
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. "
        f"Please use `torch.amp.{name}(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=3,
    )


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: _dtype | None = None) -> Callable[..., Any]:
    """Deprecated: `amp.custom_fwd(.., device_type="cuda")`."""
    _deprecated("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """Deprecated: `amp.custom_bwd(.., device_type="cuda")`."""
    _deprecated("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")


def __dir__() -> list[str]:
    return __all__
