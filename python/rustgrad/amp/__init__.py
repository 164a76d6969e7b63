"""Mixed precision: the scaling of gradients. There is no `autocast`: convert the model or its inputs with `to(dtype)`."""

from __future__ import annotations

from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler"]


def __dir__() -> list[str]:
    return __all__
