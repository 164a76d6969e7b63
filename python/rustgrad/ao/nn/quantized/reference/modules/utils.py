"""Float layers that keep the scale and the zero point of their weight, and compute with its dequantised integers."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ......nn.modules.module import Module

__all__ = ["ReferenceQuantizedModule"]

_PER_CHANNEL = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)


def quantised(weight, params):
    """A weight as integers. RuntimeError: another scheme or dtype."""
    scheme, dtype = params["qscheme"], params["dtype"]
    if dtype == torch.float16:
        return weight.to(torch.float16)
    scale, zero_point = params["scale"], params["zero_point"]
    if scheme in (torch.per_tensor_affine, None):
        return torch.quantize_per_tensor(weight, float(scale), int(zero_point), dtype)
    if scheme in _PER_CHANNEL:
        floats = scheme == torch.per_channel_affine_float_qparams
        kinds = (torch.float, torch.float) if floats else (torch.double, torch.int64)
        return torch.quantize_per_channel(
            weight,
            torch.as_tensor(scale).to(kinds[0]),
            torch.as_tensor(zero_point).to(kinds[1]),
            int(params["axis"]),
            dtype,
        )
    raise RuntimeError(f"Unsupported qscheme: {scheme}")


class ReferenceQuantizedModule(Module):
    """The base: a float layer with parameters of the quantisation of its weight."""

    _IS_REFERENCE = True
    is_decomposed = False

    def _init_weight_qparams(self, weight_qparams, device):
        """Keeps parameters: a dictionary of `qscheme`, `dtype`, `scale`, `zero_point` and `axis`."""
        if weight_qparams is None:
            weight_qparams = {"qscheme": torch.per_tensor_affine, "dtype": torch.quint8, "scale": 1.0, "zero_point": 0}
        self.weight_qscheme, self.weight_dtype = weight_qparams["qscheme"], weight_qparams["dtype"]
        if self.weight_qscheme not in (None, torch.per_tensor_affine, *_PER_CHANNEL):
            raise AssertionError(
                f"qscheme: {self.weight_qscheme} is not support in reference quantized {self._get_name()}"
            )
        zero_kind = torch.float if self.weight_qscheme == torch.per_channel_affine_float_qparams else torch.int
        self.register_buffer(
            "weight_scale", torch.as_tensor(weight_qparams["scale"], dtype=torch.float).clone().detach()
        )
        self.register_buffer(
            "weight_zero_point", torch.as_tensor(weight_qparams["zero_point"]).to(zero_kind).clone().detach()
        )
        axis = int(weight_qparams.get("axis", 0))
        self.register_buffer("weight_axis", torch.tensor(axis, dtype=torch.int))
        self.weight_axis_int = axis

    def _qparams(self):
        return {
            "qscheme": self.weight_qscheme, "dtype": self.weight_dtype, "scale": self.weight_scale,
            "zero_point": self.weight_zero_point, "axis": self.weight_axis_int,
        }  # fmt: skip

    def get_weight(self) -> Any:
        """The weight as its integers stand for it, in float32."""
        made = quantised(self.weight.detach(), self._qparams())
        return made.to(torch.float32) if made.dtype == torch.float16 else made.dequantize()

    def get_quantized_weight(self) -> Any:
        """The weight as integers."""
        return quantised(self.weight.detach(), self._qparams())


def __dir__() -> list[str]:
    return __all__
