"""The gradient scaler of split parameters: that of `amp`, as one process has all of them."""

from __future__ import annotations

from typing import Any

from ...amp import GradScaler
from ..group import _checked

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """`GradScaler`, whose gradients may be found infinite in any process of a group, of which there is one."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device,
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = _checked(process_group) if enabled else process_group


def __dir__() -> list[str]:
    return __all__
