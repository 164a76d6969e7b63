"""Averages of a model's weights during training: `AveragedModel`, its rules, and the schedule `SWALR`.

Sources: Izmailov et al., arXiv:1803.05407, for stochastic weight averaging; Polyak for exponential averages.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._base import int64, tensor
from .._C import Tensor
from .._typing import DeviceLike
from ..autograd.grad_mode import no_grad
from ..nn import Module
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ._lr_base import LRScheduler, per_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """`f(averages, params, n)`, which moves each average by `1 - decay` of the way to the parameter, in place."""
    step = get_ema_avg_fn(decay)
    return _for_all(lambda average, param, n: step(average, param, n))


def get_swa_multi_avg_fn() -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """`f(averages, params, n)`, which takes the parameters into averages of `n` models, in place."""
    step = get_swa_avg_fn()
    return _for_all(lambda average, param, n: step(average, param, n))


def _for_all(step):
    @no_grad()
    def update(averages, params, num_averaged):
        for average, param in zip(averages, params, strict=True):
            average.copy_(step(average, param, num_averaged))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Any]:
    """`f(average, param, n)`: `decay * average + (1 - decay) * param`.

    Raises:
        ValueError: `decay` is not between 0 and 1.
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Any]:
    """`f(average, param, n)`: the mean of n + 1 models from that of n."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's, one step for each `update_parameters`.

    Args:
        model (Module): the model; it is copied.
        device (device): where the averages are kept.
        avg_fn (callable): (average, parameter, number of models) -> the new average. Default: the mean of all models.
        multi_avg_fn (callable): the same in place for lists of parameters of one device and dtype.
        use_buffers (bool): whether buffers are averaged too; otherwise they are the model's.

    Raises:
        AssertionError: both functions are given.
    """

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Any] | None = None,
        multi_avg_fn: Callable[[Sequence[Tensor], Sequence[Tensor], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Updates the averages with the parameters of `model`; the first time they are copied."""
        ours, theirs = (self._averaged(m) for m in (self.module, model))
        pairs = [(a.detach(), p.detach().to(a.device)) for a, p in zip(ours, theirs, strict=True)]
        if self.n_averaged == 0:
            for average, param in pairs:
                average.copy_(param)
        elif self.multi_avg_fn is not None:
            groups = _group_tensors_by_device_and_dtype([list(side) for side in zip(*pairs, strict=True)])
            for (device, _), ((averages, params), _) in groups.items():
                self.multi_avg_fn(averages, params, self.n_averaged.to(device))
        else:
            step = self.avg_fn or get_swa_avg_fn()
            for average, param in pairs:
                average.copy_(step(average, param, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for buffer, source in zip(self.module.buffers(), model.buffers(), strict=True):
                buffer.detach().copy_(source.detach().to(buffer.device))
        self.n_averaged += 1

    def _averaged(self, model):
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike | None = None) -> None:
    """Recomputes the running statistics of a model's batch norms from one pass over the batches of `loader`.

    Args:
        loader (iterable): batches: tensors, or lists and tuples whose first item is the model's input.
        model (Module): the model.
        device (device): where the batches are moved first.
    """
    norms = {m: m.momentum for m in model.modules() if hasattr(m, "reset_running_stats") and hasattr(m, "momentum")}
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for norm, momentum in norms.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the current rate to `swa_lr` and keeps it there.

    Args:
        swa_lr (float or list): the last rate, for each group.
        anneal_epochs (int): number of steps.
        anneal_strategy (str): "cos" or "linear".

    Raises:
        ValueError: the strategy is none of these, or the number of steps negative.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    # PyTorch's pickles hold the one that is used as `anneal_func`.
    @staticmethod
    def _linear_anneal(t):
        return t

    @staticmethod
    def _cosine_anneal(t):
        return (1 - math.cos(math.pi * t)) / 2

    def anneal_func(self, t: float) -> float:
        """The annealing factor at a fraction `t` of the steps."""
        return self._linear_anneal(t) if self._anneal_strategy == "linear" else self._cosine_anneal(t)

    def _progress(self, step):
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list[float]:
        self._check_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._progress(step - 1), self._progress(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # The initial rate from which this schedule alone would have reached the current rate.
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates


def __dir__() -> list[str]:
    return __all__
