"""Observers: modules that see values and tell the scale and zero point of a quantisation by them."""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Any

import rustgrad as torch

from ..._absent import getattr_of
from ...nn.modules.module import Module
from ._granularity import (
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from .utils import calculate_qmin_qmax, determine_qparams, is_per_channel, is_per_tensor
from .utils import validate_qmin_qmax as _validate

__all__ = [
    "AffineQuantizedObserverBase",
    "FixedQParamsObserver",
    "Granularity",
    "HistogramObserver",
    "MappingType",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerAxis",
    "PerBlock",
    "PerChannelMinMaxObserver",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "PerToken",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "TorchAODType",
    "UniformQuantizationObserverBase",
    "ZeroPointDomain",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_block_size",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]

_DTYPES = (
    torch.qint8, torch.quint8, torch.quint4x2, torch.qint32, torch.int8, torch.uint8, torch.int16, torch.int32, torch.uint16,
    torch.float8_e5m2, torch.float8_e4m3fn,
)  # fmt: skip
_EPS = torch.finfo(torch.float32).eps


class _PartialWrapper:
    """A constructor with arguments filled in, some of them computed at each call."""

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        for name, make in self.callable_args.items():
            if name not in keywords:
                keywords[name] = make()
        return self.p(*args, **keywords)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """A constructor with more arguments filled in."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        """A constructor with more arguments that are computed at each call."""
        made = _PartialWrapper(functools.partial(self))
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """A constructor with these arguments filled in."""
    made = _PartialWrapper(functools.partial(getattr(cls_or_self, "p", cls_or_self), **kwargs))
    made.callable_args = dict(getattr(cls_or_self, "callable_args", {}))
    return made


def _with_callable_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """A constructor with arguments that are computed at each call."""
    return _with_args(cls_or_self).with_callable_args(**kwargs)


class ObserverBase(ABC, Module):
    """What an observer derives from.

    Args:
        dtype (dtype): of the quantised values.
        is_dynamic (bool): each value is quantised by its own range.
    """

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Sees `x`, and returns it."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """What observers derive from whose integers stand for numbers at equal distances.

    Args:
        dtype (dtype): of the quantised values.
        qscheme (qscheme): one scale or one for each channel, affine or symmetric.
        reduce_range (bool): takes one bit less.
        quant_min, quant_max (int, optional): the integers; default: those of the dtype.
        factory_kwargs (dict, optional): device and dtype of the buffers.
        eps (float): the least scale.

    Raises:
        NotImplementedError, AssertionError: a scheme, dtype or bounds that do not fit.
    """

    _version = 3
    eps: Any

    def __init__(
        self, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, reduce_range: bool = False, quant_min: Any = None,
        quant_max: Any = None, factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers.                     reduce_range will be "
                "deprecated in a future release of PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps], **(factory_kwargs or {})))
        if not (is_per_tensor(qscheme) or is_per_channel(qscheme)):
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, per_channel_affine, "
                "per_channel_symmetric and per_channel_float_qparams quantization scheme"
            )
        if dtype not in _DTYPES:
            raise AssertionError(f"Default Observer only works for {_DTYPES} data type, but got {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            _validate(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        version = local_metadata.get("version", None)
        if version is None or version == 1:
            # The least scale was no part of older states.
            state_dict[prefix + "eps"] = torch.tensor([_EPS])
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _validate_qmin_qmax(self, quant_min, quant_max):
        _validate(quant_min, quant_max)

    def _calculate_qparams(self, min_val, max_val):
        return determine_qparams(
            min_val, max_val, self.quant_min, self.quant_max, self.dtype, self.eps, self.has_customized_qrange, self.qscheme
        )  # fmt: skip

    def reset_min_max_vals(self) -> None:
        """NotImplementedError: a class with a range resets it."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


_ObserverBase = UniformQuantizationObserverBase


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest value that were seen: see `UniformQuantizationObserverBase`."""

    min_val: Any
    max_val: Any

    def __init__(
        self, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, reduce_range: bool = False, quant_min: Any = None,
        quant_max: Any = None, factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric                     and torch.per_tensor_affine."
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = factory_kwargs or {}
        self.register_buffer("min_val", torch.tensor(float("inf"), **made))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **made))
        if qscheme == torch.per_tensor_symmetric and reduce_range and dtype == torch.quint8:
            raise NotImplementedError(
                "Cannot reduce range for symmetric                                        quantization for quint8"
            )

    def forward(self, x_orig: Any) -> Any:
        """Takes the extremes of a tensor; returns it."""
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        low, high = torch.aminmax(x)
        self.min_val.copy_(torch.min(low, self.min_val))
        self.max_val.copy_(torch.max(high, self.max_val))
        return x_orig

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scale and the zero point of the range."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        self.min_val.copy_(torch.tensor(float("inf")))
        self.max_val.copy_(torch.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """A moving average of the extremes of each tensor.

    Args:
        averaging_constant (float): the weight of a new tensor.
    """

    def __init__(
        self, averaging_constant: float = 0.01, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False, quant_min: Any = None, quant_max: Any = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                f"MovingAverageMinMaxObserver's qscheme only support                 torch.per_tensor_symmetric and "
                f"torch.per_tensor_affine.                 but got: {qscheme}"
            )
        self.averaging_constant = averaging_constant
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )
        super().__init__(
            dtype=dtype, qscheme=qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max, eps=eps,
            is_dynamic=is_dynamic, **kwargs,
        )  # fmt: skip

    def forward(self, x_orig: Any) -> Any:
        """Moves the range towards the extremes of a tensor; returns it."""
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(self.min_val.dtype)
        low, high = torch.aminmax(x)
        if not (self.min_val == float("inf") and self.max_val == float("-inf")):
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest value of each channel.

    Args:
        ch_axis (int): the dimension of the channels.
    """

    min_val: Any
    max_val: Any

    def __init__(
        self, ch_axis: int = 0, dtype: Any = torch.quint8, qscheme: Any = torch.per_channel_affine, reduce_range: bool = False,
        quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None, eps: float = _EPS, is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_channel(qscheme):
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support                     torch.per_channel_symmetric, "
                "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = factory_kwargs or {}
        self.ch_axis = ch_axis
        self.register_buffer("min_val", torch.tensor([], **made))
        self.register_buffer("max_val", torch.tensor([], **made))
        if qscheme == torch.per_channel_symmetric and reduce_range and dtype == torch.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Any) -> Any:
        """Takes the extremes of each channel; returns the tensor."""
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._extremes(x_orig)
        if self.min_val.numel() == 0 or self.max_val.numel() == 0:
            self._resize(low.shape)
        else:
            low, high = self._joined(low, high)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig

    def _extremes(self, x_orig):
        x = x_orig.detach().to(self.min_val.dtype)
        rows = x.transpose(0, self.ch_axis) if self.ch_axis else x
        return torch.aminmax(torch.flatten(rows, start_dim=1) if rows.dim() > 1 else rows.reshape(-1, 1), dim=1)

    def _joined(self, low, high):
        return torch.min(low, self.min_val), torch.max(high, self.max_val)

    def _resize(self, shape):
        self.min_val.resize_(shape)
        self.max_val.resize_(shape)

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scales and the zero points of the ranges."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The ranges."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        version = local_metadata.get("version", None)
        old = version is not None and version < 3
        for name, key in (("min_val", "min_vals" if old else "min_val"), ("max_val", "max_vals" if old else "max_val")):
            if prefix + key in state_dict:
                value = state_dict.pop(prefix + key) if old else state_dict[prefix + key]
                state_dict[prefix + name] = value
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        self.min_val = torch.rand(0)
        self.max_val = torch.rand(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """A moving average of the extremes of each channel.

    Args:
        averaging_constant (float): the weight of a new tensor.
        ch_axis (int): the dimension of the channels.
    """

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = torch.quint8,
        qscheme: Any = torch.per_channel_affine, reduce_range: bool = False, quant_min: Any = None, quant_max: Any = None,
        eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_channel(qscheme):
            raise NotImplementedError(
                "MovingAveragePerChannelMinMaxObserver's qscheme only support                     torch.per_channel_symmetric, "
                "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("MovingAveragePerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(
            ch_axis=ch_axis, dtype=dtype, qscheme=qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max,
            eps=eps, is_dynamic=is_dynamic, **kwargs,
        )  # fmt: skip
        self.averaging_constant = averaging_constant

    def _joined(self, low, high):
        constant = self.averaging_constant
        return self.min_val + constant * (low - self.min_val), self.max_val + constant * (high - self.max_val)


def get_observer_state_dict(mod: Module) -> OrderedDict[str, Any]:
    """The entries of a model's state that belong to observers."""
    found = OrderedDict((k, v) for k, v in mod.state_dict().items() if "activation_post_process" in k)
    found._metadata = {  # type: ignore[attr-defined]
        k: v for k, v in mod.state_dict()._metadata.items() if "activation_post_process" in k
    }
    return found


def load_observer_state_dict(mod: Module, obs_dict: Any) -> None:
    """Gives the observers of a model a state of `get_observer_state_dict`.

    Raises:
        Exception: a key is missing, or there are others.
    """
    missing: list[str] = []
    unexpected: list[str] = []
    metadata = getattr(obs_dict, "_metadata", {})
    for name, module in mod.named_modules():
        prefix = f"{name}."
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, prefix, metadata.get(name, {}), False, missing, unexpected, [])
    for k in missing:
        if "observer" in k or "activation_post_process" in k:
            raise Exception(f"Missing keys for observer {k} in state_dict")  # noqa: TRY002
    for k in unexpected:
        if "observer" in k or "activation_post_process" in k:
            raise Exception(f"Unexpected keys for observer {k} in state_dict")  # noqa: TRY002


def _is_activation_post_process(module: Any) -> bool:
    """Whether a module observes or rounds activations."""
    from .fake_quantize import FakeQuantizeBase

    return isinstance(module, (ObserverBase, FakeQuantizeBase))


from ._histogram import HistogramObserver  # noqa: E402
from ._plain_observers import (  # noqa: E402
    FixedQParamsObserver,
    NoopObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint8, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
