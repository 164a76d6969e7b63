"""The one-cycle policy (Smith and Topin, arXiv:1708.07120): rate up and down, momentum the other way."""

from __future__ import annotations

import math

from ._lr_base import LRScheduler, per_group
from .optimizer import Optimizer


def _cosine(start, end, share):
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _linear(start, end, share):
    return (end - start) * share + start


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down again in `total_steps` steps, one a batch (Smith and Topin, arXiv:1708.07120).

    Args:
        max_lr (float or list): the peak, for each group.
        total_steps (int): or give `epochs` and `steps_per_epoch`.
        pct_start (float): share of the cycle spent rising.
        anneal_strategy (str): "cos" or "linear".
        cycle_momentum (bool): momentum (or beta1) goes the other way, from `max_momentum` to `base_momentum`.
        div_factor, final_div_factor (float): initial rate = max_lr / div_factor; last = initial / final_div_factor.
        three_phase (bool): fall to the initial rate first, then to the last.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps: int = self._count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(float(pct_start * self.total_steps), self.total_steps - 1, three_phase)
        self.optimizer = optimizer
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(max_momentum, base_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count_steps(total_steps, epochs, steps_per_epoch):
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            return total_steps
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return epochs * steps_per_epoch

    @staticmethod
    def _phases(rising, last, three_phase):
        """(end step, rate at start and end, momentum at start and end) of each phase."""
        up = (rising - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three_phase:
            return [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        down = (2 * rising - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        return [up, down, (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _start_momentum(self, max_momentum, base_momentum, last_epoch):
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1: bool = "betas" in defaults
        highs = per_group("max_momentum", self.optimizer, max_momentum)
        lows = per_group("base_momentum", self.optimizer, base_momentum)
        if last_epoch == -1:
            for group, high, low in zip(self.optimizer.param_groups, highs, lows, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def get_lr(self) -> list[float]:
        self._check_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        anneal = _cosine if self._anneal_func_type == "cos" else _linear
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase[0]:
                break
            start = phase[0]
        else:
            phase = self._schedule_phases[-1]
        end, lr_start, lr_end, m_start, m_end = phase
        share = (step - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[lr_start], group[lr_end], share))
            if self.cycle_momentum:
                self._set_momentum(group, anneal(group[m_start], group[m_end], share))
        return rates
