"""A linear layer with a quantised weight, whose inputs are quantised by their own range."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ......nn import Linear as FloatLinear
from ......nn.modules.linear import NonDynamicallyQuantizableLinear
from .... import intrinsic as nni
from ...modules import linear as _static
from ...modules.utils import _quantize_weight

__all__ = ["Linear"]


class Linear(_static.Linear):
    """A linear layer of float32 inputs: see `nn.Linear`.

    Args:
        bias_ (bool): whether there is a bias.
        dtype (dtype): of the weight: `qint8` or `float16`.
    """

    _version = 4
    _FLOAT_MODULE: Any = (FloatLinear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version = 4

    def forward(self, x: Any) -> Any:
        """A float32 tensor of shape (..., outputs)."""
        ops, packed = torch.ops.quantized, self._packed_params._packed_params
        if self._packed_params.dtype == torch.qint8:
            # States of older versions were made for inputs of eight bits.
            seven = self.version is not None and self.version >= 4
            made = ops.linear_dynamic(x, packed, reduce_range=seven)
        else:
            made = ops.linear_dynamic_fp16(x, packed)
        return made.to(x.dtype)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        """The sizes, the dtype and the scheme of the weight."""
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text + (f", qscheme={self.weight().qscheme()}" if self._packed_params.dtype == torch.qint8 else "")

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.version = local_metadata.get("version", None)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a float one, or of one that was trained with rounding.

        Raises:
            AssertionError: another class, or no configuration.
            RuntimeError: a dtype other than `qint8` and `float16`.
        """
        allowed = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, (tuple, list)) else (cls._FLOAT_MODULE,)
        if type(mod) not in allowed and not hasattr(mod, "weight_fake_quant"):
            names = str([kind.__name__ for kind in allowed])
            raise AssertionError(
                f"nn.quantized.dynamic.Linear.from_float only works for one of{names}, got {type(mod).__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if mod.qconfig is not None and mod.qconfig.weight is not None:
            observer = mod.qconfig.weight()
        else:
            from ......ao.quantization.qconfig import default_dynamic_qconfig

            observer = default_dynamic_qconfig.weight()
        linear = (
            mod[0] if isinstance(mod, nni._FusedModule) and hasattr(mod, "_modules") and "0" in mod._modules else mod
        )
        dtype = observer.dtype
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError(
                f"The only supported dtypes for dynamic quantized linear are qint8 and float16 got: {dtype}"
            )
        observer(linear.weight)
        weight = linear.weight.detach().float()
        made = cls(linear.in_features, linear.out_features, dtype=dtype)
        made.set_weight_bias(_quantize_weight(weight, observer) if dtype == torch.qint8 else weight, linear.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any) -> Any:  # type: ignore[override]
        """The layer of one that computes with dequantised weights."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made


def __dir__() -> list[str]:
    return __all__
