"""`cuda.amp.GradScaler`: deprecated for `amp.GradScaler("cuda")`."""

from __future__ import annotations

import warnings

from ... import amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """Deprecated: `amp.GradScaler("cuda", ..)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def __dir__() -> list[str]:
    return __all__
