"""`GradScaler`: keeps small half-precision gradients from underflow by scaling the loss.

Source: Micikevicius et al., Mixed Precision Training, arXiv:1710.03740, section 3.2, with the dynamic scale of PyTorch's
`torch.amp.GradScaler`: it grows after a number of steps with finite gradients and backs off after one without.
"""

from __future__ import annotations

import enum
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from .._base import Tensor, device, float16, float32, full, int32, isfinite, maximum, ops
from .._typing import DeviceLike
from ..autograd._engine import is_sparse
from ..optim import Optimizer

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """What has happened to the gradients of an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def unscale_and_check(grads: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiplies gradients by `inv_scale`, in place, and sets `found_inf` to 1 if any of them has an infinity or NaN."""
    factor = inv_scale.reshape(())
    for grad in grads:
        bad = isfinite(grad).all().logical_not().to(found_inf.dtype)
        found_inf.copy_(maximum(found_inf, bad))
        if grad.dtype == float32 or grad.element_size() == 8:
            grad.mul_(factor)
        else:
            # A factor in half precision would lose bits.
            grad.copy_(grad.to(float32) * factor)


def update_scale(
    scale: Tensor, growth_tracker: Tensor, found_inf: Tensor, growth: float, backoff: float, interval: int
) -> None:
    """Backs off where an infinity was found; else counts the step, and grows when `interval` of them have been counted."""
    bad = (found_inf != 0).reshape(scale.shape)
    counted = growth_tracker + 1
    due, grown = counted == interval, scale * growth
    grows = due & isfinite(grown)
    scale.copy_(ops["where"](bad, scale * backoff, ops["where"](grows, grown, scale)))
    growth_tracker.copy_(counted.masked_fill(bad | due, 0))


class GradScaler:
    """Scales losses so that small gradients in half precision do not vanish, and skips steps whose gradients overflowed.

    Args:
        device (str or device): where the scale is kept.
        init_scale (float): the first scale.
        growth_factor (float): what the scale is multiplied by after `growth_interval` finite steps in a row. Above 1.
        backoff_factor (float): what the scale is multiplied by after a step with an infinity or NaN. Below 1.
        growth_interval (int): the number of such steps.
        enabled (bool): False: `scale` and `unscale_` do nothing, and `step` calls the optimizer's.
    """

    def __init__(
        self,
        device: DeviceLike = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = str(device) if isinstance(device, str) else device.type
        self._enabled = enabled
        if enabled and _kind(self._device) == "cuda":
            warnings.warn(
                "GradScaler is enabled, but CUDA is not available.  Disabling. Use device='cpu' or device='gpu'.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _scale_on(self, place: DeviceLike) -> Tensor:
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32, device=place)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=place)
        return self._scale.to(place)

    def _known_scale(self, caller: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {caller} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs: Tensor | Iterable[Any]) -> Any:
        """The outputs (a tensor, or nested lists and tuples of them) times the scale; as they are if not enabled.

        Raises:
            ValueError: an output is neither a tensor nor iterable.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(output) for output in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[device, Tensor]:
        """Unscales the gradients of an optimizer; 1 for each device where one of them is infinite or NaN, else 0."""
        found: dict[device, Tensor] = {}
        by_device: defaultdict[device, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for grad in (p.grad for p in group["params"] if p.grad is not None):
                if not allow_fp16 and grad.dtype == float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device[grad.device].append((grad._values() if is_sparse(grad) else grad).detach())
        for place, grads in by_device.items():
            found[place] = found_inf.to(place, copy=True)
            unscale_and_check(grads, found[place], inv_scale.to(place))
        return found

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer by the scale, so that they can be looked at or clipped before `step`.

        Raises:
            RuntimeError: called twice since the last `update`, or after `step`.
        """
        if not self._enabled:
            return
        scale = self._known_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # Through double precision, which has the reciprocal of any float32.
        inv_scale = scale.double().reciprocal().float() if scale.is_cpu else scale.reciprocal()
        found_inf = full((), 0.0, dtype=float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _step_with_scale(self, optimizer, state, args, kwargs):
        """The step of an optimizer that unscales and skips by itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                "optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale = self._known_scale("step")
        if state["stage"] is OptState.READY:
            # Checks without unscaling: a factor of one.
            none, one = (full((), value, dtype=float32, device=scale.device) for value in (0.0, 1.0))
            state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, none, True)
        found = [f.to(scale.device) for f in state["found_inf_per_device"].values()]
        optimizer.grad_scale = scale if state["stage"] is OptState.READY else None
        optimizer.found_inf = sum(found, full((), 0.0, dtype=float32, device=scale.device))
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Calls `optimizer.step(*args, **kwargs)` on unscaled gradients, unless one of them is infinite or NaN.

        Returns what the optimizer returns, or None where the step is skipped.

        Raises:
            RuntimeError: a closure is given, or `step` was called before since the last `update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._known_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_with_scale(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            found = state["found_inf_per_device"]
            if not found:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = None if any(f.item() for f in found.values()) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Ends the iteration: the scale backs off or grows by what the gradients were, or is set.

        Args:
            new_scale (float or Tensor, optional): the scale from now on.
        """
        if not self._enabled:
            return
        scale = self._known_scale("update")
        if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
            raise AssertionError("new_scale should be a float or a 1-element Tensor with requires_grad=False.")
        if isinstance(new_scale, Tensor):
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            found = [f.to(scale.device) for state in states for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            total = sum(found[1:], found[0])
            update_scale(
                scale, self._growth_tracker, total, self._growth_factor, self._backoff_factor, self._growth_interval
            )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def is_enabled(self) -> bool:
        """Whether scaling is on."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1 if not enabled. On a GPU this waits for it."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an infinity or NaN."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by after an infinity or NaN."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of finite steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of finite steps in a row after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors, interval and the count of finite steps; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave.

        Raises:
            RuntimeError: an empty dict, which is a disabled scaler's.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state


def _kind(name: str) -> str:
    """The kind of device that tensors of a name are on: `gpu` for `cuda` where a script runs unmodified."""
    return device(name).type
