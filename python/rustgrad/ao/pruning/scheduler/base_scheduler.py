"""What schedules share: they set `sparsity_level` of the groups of a sparsifier at each step."""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


def _counted(sparsifier: Any) -> Any:
    """The sparsifier's `step`, which counts its calls."""
    step = sparsifier.step
    if getattr(step, "_with_counter", False):
        return step
    # The sparsifier holds this function, so that it may not hold the sparsifier.
    owner, function = weakref.ref(sparsifier), step.__func__

    @functools.wraps(function)
    def counting(*args: Any, **kwargs: Any) -> Any:
        here: Any = owner()
        here._step_count += 1
        return function(here, *args, **kwargs)

    counting._with_counter = True  # type: ignore[attr-defined]
    return counting


class BaseScheduler:
    """A class derived from it defines `get_sl`, the levels of the groups at `last_epoch`.

    Args:
        sparsifier (BaseSparsifier): prepared.
        last_epoch (int): the last one that was done. Default: none, -1.
        verbose (bool): print each level.
    """

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier: Any = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch, self.verbose, self._step_count = last_epoch, verbose, 0
        self.sparsifier.step = _counted(sparsifier)
        self.sparsifier._step_count = 0
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The levels that were set last."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The levels of the groups; `step` asks for them."""
        self._warn_outside_step()
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=3
            )

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Prints a level."""
        if is_verbose:
            start = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{start} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, after `sparsifier.step()`."""
        if self._step_count == 1:
            if not hasattr(self.sparsifier.step, "_with_counter"):
                warnings.warn(
                    "Seems like `sparsifier.step()` has been overridden after sparsity scheduler initialization. Please, "
                    "make sure to call `sparsifier.step()` before `scheduler.step()`.",
                    stacklevel=2,
                )
            elif self.sparsifier._step_count < 1:
                warnings.warn(
                    "Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make sure you run the "
                    "sparsifier.step() BEFORE any calls to the scheduler.step().",
                    stacklevel=2,
                )
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, level) in enumerate(zip(self.sparsifier.groups, levels)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, i, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list[Any]:
        """A value for each group. ValueError if as many are not given."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
