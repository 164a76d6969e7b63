"""Modules that round as quantised ones would, for training; and what switches them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import rustgrad as torch

from ..._absent import getattr_of
from ...nn.modules.module import Module
from . import utils as _utils
from .observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]

_is_per_channel, _is_per_tensor = _utils.is_per_channel, _utils.is_per_tensor


def _is_symmetric_quant(qscheme):
    return qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)


def _is_float_qparams(qscheme):
    return qscheme == torch.per_channel_affine_float_qparams


class FakeQuantizeBase(ABC, Module):
    """What a module that rounds as a quantised one would derives from: two switches, one byte each in its state."""

    fake_quant_enabled: Any
    observer_enabled: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """`x`, rounded where `fake_quant_enabled`."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether `forward` rounds."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """`forward` no longer rounds."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether `forward` sees values."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """`forward` no longer sees values."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """Observes values and rounds them to those that integers stand for.

    Args:
        observer (class): of the observer, or a constructor.
        quant_min, quant_max (int, optional): the integers; default: those of the observer.
        is_dynamic (bool): each value is rounded by its own range.
        observer_kwargs: arguments of the observer.

    Raises:
        AssertionError: bounds that do not fit the dtype.
    """

    scale: Any
    zero_point: Any

    def __init__(
        self, observer: Any = MovingAverageMinMaxObserver, quant_min: Any = None, quant_max: Any = None, is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", torch.quint8)
            if hasattr(observer, "p"):
                dtype = getattr(getattr(observer, "p", {}), "keywords", {}).get("dtype", dtype)
            kind = torch.iinfo(dtype)
            if not kind.min <= quant_min:
                raise AssertionError("quant_min out of bound")
            if not quant_max <= kind.max:
                raise AssertionError("quant_max out of bound")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        made = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = made.quant_min, made.quant_max, made.is_dynamic
        zero_kind = torch.float if _is_float_qparams(made.qscheme) else torch.int
        self.register_buffer("scale", torch.tensor([1.0], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([0], dtype=zero_kind))
        self.dtype, self.qscheme = made.dtype, made.qscheme
        self.ch_axis = getattr(made, "ch_axis", -1)
        if not (_is_per_channel(self.qscheme) or _is_per_tensor(self.qscheme)):
            raise AssertionError(
                "Only per channel and per tensor quantization are supported in fake quantize got qscheme: "
                + str(self.qscheme)
            )
        self.is_per_channel = _is_per_channel(self.qscheme)

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scale and the zero point of what was observed."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Any) -> Any:
        """`X`, observed and rounded where the switches say so."""
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            scale, zero_point = scale.to(self.scale.device), zero_point.to(self.zero_point.device)
            if self.scale.shape != scale.shape:
                self.scale.resize_(scale.shape)
                self.zero_point.resize_(zero_point.shape)
            self.scale.copy_(scale)
            self.zero_point.copy_(zero_point)
        if self.fake_quant_enabled[0] == 1:
            low, high = self.activation_post_process.quant_min, self.activation_post_process.quant_max
            if self.is_per_channel:
                return torch.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, low, high)
            return torch.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, low, high)
        return X

    def extra_repr(self) -> str:
        """The switches, the integers and the parameters."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.activation_post_process.quant_min}, quant_max={self.activation_post_process.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, "
            f"zero_point={self.zero_point}"
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # Buffers whose shapes change: they are saved as they are.
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = self.scale
        destination[prefix + "zero_point"] = self.zero_point

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a scale and a zero point that are known: those of a `FixedQParamsObserver`."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        made = self.activation_post_process
        if type(made).__name__ != "FixedQParamsObserver":
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale, self.zero_point = made.scale, made.zero_point
        if not _is_per_tensor(self.qscheme):
            raise AssertionError("Only per tensor quantization is supported in FixedQParamsFakeQuantize module, got qscheme:" + str(self.qscheme))  # fmt: skip

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        """The switches, the parameters and the integers."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.activation_post_process.quant_min}, "
            f"quant_max={self.activation_post_process.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with a moving average of ranges, in one function: see `fused_moving_avg_obs_fake_quant`."""

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        ):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver or "
                "MovingAveragePerChannelMinMaxObserver"
            )
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.long))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.long))
        self.is_symmetric_quant = _is_symmetric_quant(self.activation_post_process.qscheme)

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scale and the zero point of what was observed."""
        return self.activation_post_process.calculate_qparams()

    def extra_repr(self) -> str:
        """The switches, the parameters, the integers and whether rows have their own."""
        made = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={made.quant_min}, quant_max={made.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={made.reduce_range}"
        )

    def forward(self, X: Any) -> Any:
        """`X`, observed and rounded where the switches say so."""
        made = self.activation_post_process
        return torch.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, made.min_val, made.max_val, self.scale, self.zero_point,
            made.averaging_constant, made.quant_min, made.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8, qscheme=torch.per_tensor_affine,
    reduce_range=True,
)  # fmt: skip
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8, qscheme=torch.per_tensor_symmetric,
    reduce_range=False,
)  # fmt: skip
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=torch.quint8,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
    qscheme=torch.per_channel_symmetric, reduce_range=False, ch_axis=0,
)  # fmt: skip
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=torch.per_channel_affine_float_qparams, dtype=torch.quint8,
    quant_min=0, quant_max=255, ch_axis=0, averaging_constant=1,
)  # fmt: skip
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0,
    dtype=torch.quint4x2, averaging_constant=1,
)  # fmt: skip
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver,
    quant_min=0,
    quant_max=255,
    dtype=torch.quint8,
    qscheme=torch.per_tensor_affine,
    reduce_range=True,
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
    qscheme=torch.per_channel_symmetric,
)  # fmt: skip
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-127, quant_max=127, dtype=torch.qint8, qscheme=torch.per_tensor_symmetric,
    eps=2**-12,
)  # fmt: skip
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-127, quant_max=127, dtype=torch.qint8,
    qscheme=torch.per_channel_symmetric, eps=2**-12,
)  # fmt: skip


def _switched(method):
    def switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, method)()

    switch.__name__ = switch.__qualname__ = method
    switch.__doc__ = f"`{method}` of a module that rounds; for `Module.apply`."
    return switch


disable_fake_quant, enable_fake_quant = _switched("disable_fake_quant"), _switched("enable_fake_quant")
disable_observer, enable_observer = _switched("disable_observer"), _switched("enable_observer")
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
