"""`LRScheduler`: what all schedulers share. A scheduler gives `get_lr`, from the rate before or in closed form."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable
from typing import Any

from .._base import Tensor
from .optimizer import Optimizer, to_scalar

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _own(value):
    """The value; a tensor is copied, so that other owners may change it."""
    return value.clone() if isinstance(value, Tensor) else value


def copy_values(optimizer: Optimizer, key: str) -> list[Any]:
    """The option `key` of every group; tensors are copied."""
    return [_own(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets an option; a tensor is filled in place, so that it stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(to_scalar(value))
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """`value` as a list with one entry for each group; tensors are copied."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in range(n)]
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {n}."
        )
    return [_own(v) for v in value]


def function_state(functions: Iterable[Any]) -> list[Any]:
    """The state of a callable: the attributes of an object, None for a plain function."""
    return [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in functions]


class LRScheduler:
    """Base class of the schedulers: call `step()` after each epoch (or batch), after `optimizer.step()`.

    Args:
        optimizer (Optimizer): its groups' "lr" is changed.
        last_epoch (int): the epoch to resume at; -1 starts afresh.

    Raises:
        TypeError: `optimizer` is not an optimizer.
        KeyError: resuming, and a group has no "initial_lr".
    """

    _is_initial = False
    _get_lr_called_within_step = False
    _not_saved = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the "
                    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list[Any] = copy_values(optimizer, "initial_lr")
        self.last_epoch: int = last_epoch
        if not getattr(optimizer, "_lr_tracked", False):
            optimizer._lr_tracked = True
            optimizer._opt_called = False
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The rates that the last `step` set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[float]:
        """The rates for `self.last_epoch`; a scheduler defines it."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advances by one epoch and sets the rates."""
        if self._step_count == 1:
            self._warn_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_order(self):
        if not hasattr(self.optimizer.step, "hooked"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
                f"See more details at {_ORDER}",
                UserWarning,
                stacklevel=3,
            )
        elif not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                "to do this will result in PyTorch skipping the first value of the learning rate schedule. "
                f"See more details at {_ORDER}",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed_form()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = copy_values(self.optimizer, "lr")

    def _check_within_step(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _scaled(self, factor):
        """The current rates, each times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _unchanged(self):
        return copy_values(self.optimizer, "lr")
