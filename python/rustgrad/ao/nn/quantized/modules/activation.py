"""Quantised activations."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import nn
from ...quantizable import MultiheadAttention as _ObservedAttention
from .. import functional as qF
from .utils import OutputQParams, _act_qparams

__all__ = ["ELU", "Hardswish", "LeakyReLU", "MultiheadAttention", "PReLU", "ReLU6", "Sigmoid", "Softmax"]


class ReLU6(nn.ReLU):
    """`clamp(0, 6)` of quantised inputs, with their scale."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one."""
        return ReLU6(mod.inplace)


class Hardswish(OutputQParams, nn.Hardswish):
    """`nn.Hardswish` of quantised inputs.

    Args:
        scale, zero_point: of the results.
    """

    def __init__(self, scale: Any, zero_point: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self._register_output(scale, zero_point, device)

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.hardswish(input, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return Hardswish(*_act_qparams(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module of a float one."""
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """`nn.ELU` of quantised inputs.

    Args:
        scale, zero_point: of the results.
    """

    def __init__(self, scale: Any, zero_point: Any, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return qF.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self):
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return ELU(*_act_qparams(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module of a float one."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(OutputQParams, nn.LeakyReLU):
    """`nn.LeakyReLU` of quantised inputs.

    Args:
        scale, zero_point: of the results.
    """

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 1e-2, inplace: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(negative_slope, inplace)
        self._register_output(scale, zero_point, device)

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.leaky_relu(input, self.negative_slope, self.inplace, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return cls.from_reference(mod, *_act_qparams(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module of a float one."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """`nn.Sigmoid` of quantised inputs.

    Args:
        output_scale, output_zero_point: of the results.
    """

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return cls(*_act_qparams(mod))


class Softmax(nn.Softmax):
    """`nn.Softmax` of quantised inputs.

    Args:
        scale, zero_point: of the results.
    """

    def __init__(self, dim: Any = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return torch.ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        return Softmax(mod.dim, *_act_qparams(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module of a float one."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(nn.Module):
    """`nn.PReLU` of quantised inputs with a quantised weight.

    Args:
        output_scale, output_zero_point: of the results.
    """

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(torch.quantize_per_tensor(torch.randn(num_parameters), 1.0, 0, torch.quint8))

    def set_weight(self, w: Any) -> None:
        """Takes a quantised weight."""
        self.weight = w

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        return torch.ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one that was observed."""
        made = cls(*_act_qparams(mod), mod.num_parameters)
        weight, observer = mod.weight.detach().float(), mod.qconfig.weight()
        observer(weight)
        scale, zero_point = observer.calculate_qparams()
        made.set_weight(torch.quantize_per_tensor(weight, float(scale), int(zero_point), torch.quint8))
        return made

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module of a float one."""
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        weight, observer = mod.weight.detach().float(), mod.qconfig.weight()
        observer(weight)
        weight_scale, weight_zero = observer.calculate_qparams()
        made.set_weight(torch.quantize_per_tensor(weight, float(weight_scale), int(weight_zero), torch.quint8))
        return made


class MultiheadAttention(_ObservedAttention):
    """Attention whose projections are quantised: made by `convert` of `nn.quantizable.MultiheadAttention`."""

    _FLOAT_MODULE = _ObservedAttention

    def _get_name(self):
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """NotImplementedError: the float module becomes an observed one first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantised module of an observed one."""
        from .....ao.quantization import convert

        made = convert(other, mapping=None, inplace=False, remove_qconfig=True, convert_custom_config_dict=None)
        made.__class__ = cls
        return made


def __dir__() -> list[str]:
    return __all__
