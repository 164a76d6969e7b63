"""Quantised convolutions, and transposed ones."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..... import nn
from .....nn import functional as F
from .....nn.modules.utils import _pair, _single, _triple
from .....nn.utils.fusion import fuse_conv_bn_weights
from ... import intrinsic as nni
from .utils import WeightedQuantizedModule, _check_float_module, _quantize_weight

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_TUPLES = {1: _single, 2: _pair, 3: _triple}


def _reverse_repeat_padding(padding):
    """Padding as `nn.functional.pad` takes it: from the last dimension, both ends."""
    return [n for size in reversed(padding) for n in (size, size)]


class _ConvNd(WeightedQuantizedModule):
    """A convolution of quantised inputs with a quantised weight.

    Attributes:
        scale, zero_point: of the results.
    """

    _dims = 0
    _FLOAT_MODULE: Any = None
    _NNI_CONV_RELU_MODULE: Any = None
    _transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
        output_padding: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_mode == "circular":
            raise NotImplementedError("circular padding is not supported by quantized convolution")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        each = _TUPLES[self._dims]
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = each(kernel_size), each(stride), each(dilation)
        self.padding = padding if isinstance(padding, str) else each(padding)
        self.output_padding, self.transposed, self.padding_mode = each(output_padding), self._transposed, padding_mode
        ins, outs = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        weight = torch._empty_affine_quantized([ins, outs, *self.kernel_size], scale=1, zero_point=0, dtype=torch.qint8)
        weight.fill_(0)
        self.set_weight_bias(weight, torch.zeros(out_channels, dtype=torch.float) if bias else None)
        self.scale: Any = 1.0
        self.zero_point: Any = 0

    # --- weight ----------------------------------------------------------------------------------------------
    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Takes a quantised weight and a bias, or None."""
        ops, n = torch.ops.quantized, self._dims
        if self._transposed:
            prepack = getattr(ops, f"conv_transpose{n}d_prepack")
            self._packed_params = prepack(
                w, b, self.stride, self.padding, self.output_padding, self.dilation, self.groups
            )
            return
        padding = (0,) * n if self.padding_mode != "zeros" else self.padding
        self._packed_params = getattr(ops, f"conv{n}d_prepack")(w, b, self.stride, padding, self.dilation, self.groups)

    def _weight_bias(self):
        kind = "conv_transpose" if self._transposed else "conv"
        return getattr(torch.ops.quantized, f"{kind}{self._dims}d_unpack")(self._packed_params)

    def weight(self) -> Any:
        """The quantised weight."""
        return self._weight_bias()[0]

    def bias(self) -> Any:
        """The bias, or None."""
        return self._weight_bias()[1]

    # --- calls -----------------------------------------------------------------------------------------------
    def _padded(self, input):
        if len(input.shape) != self._dims + 2:
            shape = "N, C, L" if self._dims == 1 else "N, C, H, W" if self._dims == 2 else "N, C, D, H, W"
            raise ValueError(f"Input shape must be `({shape})`!")
        if self.padding_mode == "zeros":
            return input
        return F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)

    def forward(self, input: Any) -> Any:
        """A quantised tensor."""
        kind = "conv_transpose" if self._transposed else "conv"
        op = getattr(torch.ops.quantized, f"{kind}{self._dims}d")
        return op(self._padded(input), self._packed_params, self.scale, self.zero_point)

    def extra_repr(self) -> str:
        """The geometry, the scale and the zero point."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )
        n = self._dims
        for name, usual in (("padding", (0,) * n), ("dilation", (1,) * n), ("output_padding", (0,) * n), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text if self.bias() is not None else text + ", bias=False"

    def _get_name(self):
        return f"QuantizedConv{'Transpose' if self._transposed else ''}{self._dims}d"

    # --- state -----------------------------------------------------------------------------------------------
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        weight, bias = self._weight_bias()
        destination[prefix + "weight"], destination[prefix + "bias"] = weight, bias
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def __deepcopy__(self, memo: Any) -> Any:
        made = type(self).__new__(type(self))
        torch.nn.Module.__init__(made)
        made.__setstate__(self.__getstate__())
        return made

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __getstate__(self) -> Any:
        return dict(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    # --- from other modules ----------------------------------------------------------------------------------
    @classmethod
    def _sized(cls, mod):
        """An empty convolution of the geometry of a float one."""
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.dilation, mod.groups,
            mod.bias is not None, mod.padding_mode,
        )  # fmt: skip

    @classmethod
    def get_qconv(cls, mod: Any, activation_post_process: Any, weight_post_process: Any = None) -> Any:
        """The quantised convolution of a float one and the observers of its results and its weight."""
        if weight_post_process is None:
            weight_post_process = mod.qconfig.weight()
        weight_post_process(mod.weight)
        if weight_post_process.dtype != torch.qint8:
            raise AssertionError("Weight observer must have a dtype of qint8")
        made = cls._sized(mod)
        made.set_weight_bias(_quantize_weight(mod.weight.detach().float(), weight_post_process), mod.bias)
        if activation_post_process is None or activation_post_process.dtype == torch.float:
            return made  # dynamic: the scale is that of each result
        scale, zero_point = activation_post_process.calculate_qparams()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised convolution of a float one that was observed, or trained with rounding."""
        observer = getattr(mod, "activation_post_process", None)
        if hasattr(mod, "weight_fake_quant"):
            if hasattr(mod, "bn"):
                bn = mod.bn
                mod.weight, mod.bias = fuse_conv_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
                )
            return cls.get_qconv(mod, observer, mod.weight_fake_quant)
        fused = cls._NNI_CONV_RELU_MODULE
        allowed = [kind for kind in (cls._FLOAT_MODULE, *(fused or ())) if kind is not None]
        _check_float_module(cls, mod, allowed)
        weight_post_process = mod.qconfig.weight()
        return cls.get_qconv(mod[0] if isinstance(mod, nni._FusedModule) else mod, observer, weight_post_process)

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised convolution of one that computes with dequantised weights."""
        made = cls._sized(ref_qconv)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class Conv1d(_ConvNd):
    """A convolution over one dimension of quantised inputs (N, C, L): see `nn.Conv1d`."""

    _dims = 1
    _FLOAT_MODULE = nn.Conv1d
    _NNI_CONV_RELU_MODULE = (nni.ConvReLU1d,)


class Conv2d(_ConvNd):
    """A convolution over two dimensions of quantised inputs (N, C, H, W): see `nn.Conv2d`."""

    _dims = 2
    _FLOAT_MODULE = nn.Conv2d
    _NNI_CONV_RELU_MODULE = (nni.ConvReLU2d, nni.ConvAdd2d, nni.ConvAddReLU2d)


class Conv3d(_ConvNd):
    """A convolution over three dimensions of quantised inputs (N, C, D, H, W): see `nn.Conv3d`."""

    _dims = 3
    _FLOAT_MODULE = nn.Conv3d
    _NNI_CONV_RELU_MODULE = (nni.ConvReLU3d,)


class _ConvTransposeNd(_ConvNd):
    _transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype,
            output_padding,
        )  # fmt: skip

    @classmethod
    def _sized(cls, mod):
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.output_padding, mod.groups,
            mod.bias is not None, mod.dilation, mod.padding_mode,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over one dimension: see `nn.ConvTranspose1d`."""

    _dims = 1
    _FLOAT_MODULE = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over two dimensions: see `nn.ConvTranspose2d`."""

    _dims = 2
    _FLOAT_MODULE = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over three dimensions: see `nn.ConvTranspose3d`."""

    _dims = 3
    _FLOAT_MODULE = nn.ConvTranspose3d


def __dir__() -> list[str]:
    return __all__
