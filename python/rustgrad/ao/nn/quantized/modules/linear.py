"""A quantised linear layer."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from .....nn import Linear as FloatLinear
from .....nn.modules.linear import NonDynamicallyQuantizableLinear
from .....nn.modules.module import Module
from .....nn.utils.fusion import fuse_linear_bn_weights
from ... import intrinsic as nni
from .utils import WeightedQuantizedModule, _check_float_module, _quantize_weight

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(Module):
    """The weight and the bias of a linear layer, as its products take them.

    Args:
        dtype (dtype): `qint8`, or `float16`.
    """

    _version = 3

    def __init__(self, dtype: Any = torch.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        if dtype == torch.qint8:
            weight = torch._empty_affine_quantized([1, 1], scale=1, zero_point=0, dtype=torch.qint8)
            weight.fill_(0)
        elif dtype == torch.float16:
            weight = torch.zeros([1, 1], dtype=torch.float)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight: Any, bias: Any) -> None:
        """Takes a weight and a bias, or None."""
        if self.dtype == torch.qint8:
            self._packed_params = torch.ops.quantized.linear_prepack(weight, bias)
        elif self.dtype == torch.float16:
            self._packed_params = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        version = local_metadata.get("version", None)
        if version is None or version < 2:
            self.dtype = torch.qint8
        else:
            self.dtype = state_dict.pop(prefix + "dtype")
        if version is None or version < 3:
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        else:
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """A linear layer of quantised inputs with a quantised weight: see `nn.Linear`.

    Args:
        bias_ (bool): whether there is a bias.
        dtype (dtype): of the weight.

    Attributes:
        scale, zero_point: of the results.
    """

    _version = 3
    _FLOAT_MODULE: Any = (FloatLinear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bias = torch.zeros(out_features, dtype=torch.float) if bias_ else None
        if dtype == torch.qint8:
            weight = torch._empty_affine_quantized(
                [out_features, in_features], scale=1, zero_point=0, dtype=torch.qint8
            )
            weight.fill_(0)
        elif dtype == torch.float16:
            weight = torch.zeros([out_features, in_features], dtype=torch.float)
        else:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale: Any = 1.0
        self.zero_point: Any = 0

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        """The sizes, the scale and the scheme of the weight."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, x: Any) -> Any:
        """A quantised tensor of shape (..., outputs)."""
        return torch.ops.quantized.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        version = local_metadata.get("version", None)
        if version is None or version == 1:
            weight, bias = state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias")
            state_dict.update({prefix + "_packed_params.weight": weight, prefix + "_packed_params.bias": bias})
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self) -> Any:
        """The quantised weight: shape (outputs, inputs)."""
        return self._weight_bias()[0]

    def bias(self) -> Any:
        """The bias, or None."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Takes a quantised weight and a bias, or None."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised layer of a float one that was observed, or trained with rounding."""
        observed = mod
        if hasattr(mod, "weight_fake_quant"):
            if type(mod).__name__ == "LinearBn1d":
                bn = mod.bn
                mod.weight, mod.bias = fuse_linear_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
                )
            weight_post_process = mod.weight_fake_quant
        else:
            allowed = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, (tuple, list)) else (cls._FLOAT_MODULE,)
            _check_float_module(cls, mod, allowed)
            if isinstance(mod, nni._FusedModule):
                mod = mod[0]
            weight_post_process = observed.qconfig.weight()
        if not use_precomputed_fake_quant:
            weight_post_process(mod.weight)
        if weight_post_process.dtype != torch.qint8:
            raise AssertionError("Weight observer must have dtype torch.qint8")
        scale, zero_point = observed.activation_post_process.calculate_qparams()
        made = cls._sized(observed, mod)
        made.set_weight_bias(_quantize_weight(mod.weight.detach().float(), weight_post_process), mod.bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def _sized(cls, observed, linear):
        """An empty layer of the sizes of a float one."""
        return cls(linear.in_features, linear.out_features)

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised layer of one that computes with dequantised weights."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def __dir__() -> list[str]:
    return __all__
