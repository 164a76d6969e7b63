"""What quantised modules share: weights of observers, and the base of those that have one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import rustgrad as torch

from .....nn.modules.module import Module

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(Module, ABC):
    """A quantised module that computes with a weight."""

    @classmethod
    @abstractmethod
    def from_reference(cls, ref_module: Any, output_scale: float, output_zero_point: int) -> Any:
        """The module of one that computes with dequantised weights."""


def _get_weight_observer(observer):
    """The observer in a module that rounds; an observer itself."""
    return getattr(observer, "activation_post_process", observer)


def _needs_weight_clamping(observer, dtype):
    """Whether an observer takes fewer integers than the dtype has."""
    observer = _get_weight_observer(observer)
    if dtype not in (torch.qint8, torch.quint8, torch.qint32):
        return False
    kind = torch.iinfo(dtype)
    return observer.quant_min > kind.min or observer.quant_max < kind.max


def _clamp_weights(qweight, observer, scale, zp):
    """A quantised weight with the integers that its observer takes."""
    if not _needs_weight_clamping(observer, qweight.dtype):
        return qweight
    observer = _get_weight_observer(observer)
    integers = qweight.int_repr().clamp(observer.quant_min, observer.quant_max)
    if observer.qscheme in (torch.per_tensor_symmetric, torch.per_tensor_affine):
        return torch._make_per_tensor_quantized_tensor(integers, float(scale), int(zp))
    return torch._make_per_channel_quantized_tensor(integers, scale, zp, axis=observer.ch_axis)


def _quantize_weight(float_wt, observer):
    """A weight with the scale and zero point of its observer. ValueError: another scheme."""
    scale, zp = observer.calculate_qparams()
    if observer.qscheme in (torch.per_tensor_symmetric, torch.per_tensor_affine):
        made = torch.quantize_per_tensor(float_wt, float(scale), int(zp), observer.dtype)
        return _clamp_weights(made, observer, scale, zp)
    if observer.qscheme in (torch.per_channel_symmetric, torch.per_channel_affine):
        made = torch.quantize_per_channel(
            float_wt, scale.to(torch.double), zp.to(torch.int64), observer.ch_axis, observer.dtype
        )
        return _clamp_weights(made, observer, scale, zp)
    if observer.qscheme == torch.per_channel_affine_float_qparams:
        made = torch.quantize_per_channel(
            float_wt, scale.to(torch.float), zp.to(torch.float), observer.ch_axis, observer.dtype
        )
        return _clamp_weights(made, observer, scale, zp)
    raise ValueError("Unexpected qscheme " + str(observer.qscheme))


def _check_float_module(cls, mod, allowed):
    """AssertionError: a module's class is none of those that `from_float` takes, or it has no configuration."""
    if type(mod) not in allowed:
        names = [kind.__name__ for kind in allowed]
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined.")


def _act_qparams(mod):
    """The scale and the zero point that a module's observer found."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class OutputQParams:
    """A part of modules that keep the scale and the zero point of their results as buffers."""

    def _register_output(self, scale, zero_point, device=None):
        self.register_buffer("scale", torch.tensor(scale, device=device))
        self.register_buffer("zero_point", torch.tensor(zero_point, device=device))


def __dir__() -> list[str]:
    return __all__
