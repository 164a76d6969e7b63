"""`CubicSL`: levels that grow fast first and slowly at the end."""

from __future__ import annotations

from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """Levels between `init_sl` and the group's own: the way that is left shrinks with the cube of the time that is left.

    Args:
        sparsifier (BaseSparsifier): prepared.
        init_sl (float): the level at the start.
        init_t (int): the epoch of the start.
        delta_t, total_t (int): the end is `delta_t * total_t` epochs later.
        initially_zero (bool): the level is 0 before the start.
        last_epoch (int), verbose (bool): as in `BaseScheduler`.

    The first five may be lists with one for each group.
    """

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        init_sl: Any = 0.0,
        init_t: Any = 0,
        delta_t: Any = 10,
        total_t: Any = 100,
        initially_zero: Any = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.sparsifier = sparsifier
        self.init_sl, self.init_t = self._make_sure_a_list(init_sl), self._make_sure_a_list(init_t)
        self.delta_t, self.total_t = self._make_sure_a_list(delta_t), self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False
    ) -> float:
        """The level at epoch `t`, from `s_0` at `t_0` to `s_f` at `t_0 + dt * n`."""
        if initially_zero and t < t_0:
            return 0
        return max(s_0, min(s_f, s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3))

    def get_sl(self) -> list[float]:
        self._warn_outside_step()
        lists = (self.init_t, self.delta_t, self.total_t, self.initially_zero)
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, *rest)
            for first, last, *rest in zip(self.init_sl, self.base_sl, *lists)
        ]
