"""Rates that go up and down with the momentum going the other way: `CyclicLR` and the one-cycle policy."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any

from ._lr_base import LRScheduler, per_group, set_value
from .optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """Access to the momentum, or beta1, of the groups."""

    def _start_momentum(self, max_momentum, base_momentum, last_epoch):
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        highs = per_group("max_momentum", self.optimizer, max_momentum)
        lows = per_group("base_momentum", self.optimizer, base_momentum)
        if last_epoch == -1:
            for group, high, low in zip(self.optimizer.param_groups, highs, lows, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return highs, lows

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Between `base_lr` and `max_lr` and back, periodically, one step per batch (Smith, arXiv:1506.01186).

    Args:
        base_lr, max_lr (float or list): the bounds, for each group.
        step_size_up, step_size_down (int): steps of the rising and the falling half; by default as many.
        mode (str): "triangular" keeps the height of a cycle, "triangular2" halves it with each cycle, "exp_range" makes
            it `gamma ** step`.
        scale_fn (callable): the height of a cycle instead of `mode`, between 0 and 1.
        scale_mode (str): whether `scale_fn` is given the number of the "cycle" or of the step ("iterations").
        cycle_momentum (bool): momentum (or beta1) goes the other way, from `max_momentum` to `base_momentum`.

    Raises:
        ValueError: `mode` is none of these, or the optimizer has no momentum to cycle.
    """

    _not_saved = ("optimizer", "_scale_fn_ref")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.max_momentums, self.base_momentums = self._start_momentum(max_momentum, base_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self):
        if self._scale_fn_custom is not None:
            return
        found = getattr(self, f"_{self.mode}_scale_fn")
        self._scale_fn_ref = functools.partial(found, self.gamma) if self.mode == "exp_range" else found
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    @staticmethod
    def _triangular_scale_fn(x):
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x):
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma, x):
        return gamma**x

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, from its number or from the step."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

        def between(start, end):
            return start + (end - start) * share * height

        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True)
            for group, high, low in bounds:
                self._set_momentum(group, between(high, low))
        return [between(low, high) for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All attributes; of `scale_fn` only one that is an object, by its attributes."""
        fn = self._scale_fn_custom
        saved = None if fn is None or isinstance(fn, types.FunctionType) else fn.__dict__.copy()
        return {**super().state_dict(), "_scale_fn_custom": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned; a function stays as it was given."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)
        self._init_scale_fn()


# The entries of a phase of `OneCycleLR`.
_PHASE = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")


class OneCycleLR(_WithMomentum):
    """Up to `max_lr` and down again in `total_steps` steps, one per batch (Smith and Topin, arXiv:1708.07120).

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
        """Where each phase ends, and the entries of a group that it goes from and to: as PyTorch's states hold them."""
        up = (rising - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            down = (2 * rising - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            phases = [up, down, (last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            phases = [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        return [dict(zip(_PHASE, phase, strict=True)) for phase in phases]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes a state over: PyTorch's, or one of rustgrad before phases had PyTorch's form."""
        super().load_state_dict(state_dict)
        self._schedule_phases = [
            phase if isinstance(phase, dict) else dict(zip(_PHASE, phase, strict=True))
            for phase in self._schedule_phases
        ]

    @staticmethod
    def _annealing_cos(start, end, pct):
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start, end, pct):
        return (end - start) * pct + start

    def _anneal_func(self, *args):
        # A state that was saved before there were names for the two holds the function itself.
        if not hasattr(self, "_anneal_func_type"):
            return self.anneal_func(*args)
        return (self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear)(*args)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        anneal = self._anneal_func
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        end, lr_start, lr_end, m_start, m_end = (phase[name] for name in _PHASE)
        share = (step - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[lr_start], group[lr_end], share))
            if self.cycle_momentum:
                self._set_momentum(group, anneal(group[m_start], group[m_end], share))
        return rates
