"""The gradient scaler of parameters that lie in several processes: that of `amp`, which asks all of them for infinities."""

from __future__ import annotations

from typing import Any

from ..._base import Tensor
from ...amp import GradScaler
from ..collectives import all_reduce
from ..group import _checked
from ..reductions import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """`GradScaler` that leaves a step out where any process of a group has found an infinite gradient."""

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

    def _unscale_grads_(self, *args: Any) -> dict[Any, Tensor]:
        found = super()._unscale_grads_(*args)
        for each in found.values():
            all_reduce(each, ReduceOp.MAX, self.process_group)
        return found


def __dir__() -> list[str]:
    return __all__
