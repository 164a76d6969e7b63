"""`LambdaSL`: levels by a function of the epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The level of each group is its first one times a function of the epoch.

    Args:
        sparsifier (BaseSparsifier): prepared.
        sl_lambda (function or list of function): epoch -> factor; one, or one for each group.
        last_epoch (int), verbose (bool): as in `BaseScheduler`.
    """

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        several = isinstance(sl_lambda, (list, tuple))
        if several and len(sl_lambda) != len(sparsifier.groups):  # type: ignore[arg-type]
            raise ValueError(f"Expected {len(sparsifier.groups)} lr_lambdas, but got {len(sl_lambda)}")  # type: ignore[arg-type]
        self.sl_lambdas: list[Any] = list(sl_lambda) if several else [sl_lambda] * len(sparsifier.groups)  # type: ignore[arg-type]
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        self._warn_outside_step()
        return [level * factor(self.last_epoch) for factor, level in zip(self.sl_lambdas, self.base_sl)]
