"""Convolutions with batch norm and relu that are trained with rounded weights."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ...... import nn
from ......nn import functional as F
from ......nn import init
from ......nn.utils.fusion import fuse_conv_bn_weights
from .... import intrinsic as nni
from ....qat.modules import conv as nnqat
from ....qat.modules.conv import geometry
from ....qat.modules.linear import checked, take_parameters

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "freeze_bn_stats",
    "update_bn_stats",
]


class _BatchNormed:
    """A part of layers with a batch norm inside: its scale is folded into the weight before that is rounded.

    The result is divided by the scale again before batch norm, so the statistics are those of the float layer.
    """

    bn: Any
    weight: Any
    bias: Any
    training: bool
    freeze_bn: bool
    # Whether a scale of zero is taken into account, which costs a second product.
    _enable_slow_path_for_better_numerical_stability = False

    def _add_bn(self, bn, freeze_bn, qconfig):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = bn
        self.weight_fake_quant = qconfig.weight()
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_running_stats(self) -> None:
        """Forgets the statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Forgets the statistics, and takes a random scale and no shift."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Any:
        """Statistics are those of each batch, and the running ones follow."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """The running statistics are used, and stay."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Any:
        """Sets the mode; frozen statistics stay frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():  # type: ignore[attr-defined]
                module.train(mode)
        return self

    def _normed(self, product):
        """Batch norm of `product(rounded weight)`, where the scale of batch norm is in the weight."""
        if self._enable_slow_path_for_better_numerical_stability:
            return self._normed_slowly(product)
        bn, dims = self.bn, self.weight.dim()
        factor = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        folded = self.weight_fake_quant(self.weight * factor.reshape([-1] + [1] * (dims - 1)))  # type: ignore[operator]
        shape = [1, -1] + [1] * (dims - 2)
        made = product(folded) / factor.reshape(shape)
        if self.bias is not None:
            made = made + self.bias.reshape(shape)
        return self.bn(made)

    def _normed_slowly(self, product):
        """`_normed` without a division by the scale: the statistics are those of a product with the float weight."""
        bn, dims = self.bn, self.weight.dim()
        if bn.training:
            plain = product(self.weight)
            others = [d for d in range(plain.dim()) if d != 1]
            mean, var = plain.mean(others), plain.var(others, correction=0)
            count = plain.numel() // plain.shape[1]
            with torch.no_grad():
                bn.num_batches_tracked.add_(1)
                share = 1.0 / float(bn.num_batches_tracked) if bn.momentum is None else bn.momentum
                shift = 0 if self.bias is None else self.bias
                bn.running_mean.lerp_(mean + shift, share)
                bn.running_var.lerp_(var * (count / max(count - 1, 1)), share)
        else:
            mean = bn.running_mean if self.bias is None else bn.running_mean - self.bias
            var = bn.running_var
        factor = bn.weight / torch.sqrt(var + bn.eps)
        folded = self.weight_fake_quant(self.weight * factor.reshape([-1] + [1] * (dims - 1)))  # type: ignore[operator]
        return product(folded) + (bn.bias - mean * factor).reshape([1, -1] + [1] * (dims - 2))


def _copy_bn(made, bn):
    """Gives a layer with batch norm inside the parameters and statistics of another one."""
    made.bn.weight, made.bn.bias = bn.weight, bn.bias
    made.bn.running_mean, made.bn.running_var = bn.running_mean, bn.running_var
    made.bn.num_batches_tracked = bn.num_batches_tracked
    return made


class _ConvBnNd(_BatchNormed):
    _version = 2
    _dims = 0
    _FLOAT_MODULE: Any = None
    _FLOAT_CONV_MODULE: Any = None
    _FLOAT_BN_MODULE: Any = None
    _FLOAT_RELU_MODULE: Any = None
    _FUSED_FLOAT_MODULE: Any = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: Any = None, padding_mode: str = "zeros", eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=groups,
            bias=bool(bias), padding_mode=padding_mode,
        )  # fmt: skip
        bn = getattr(nn, f"BatchNorm{self._dims}d")(out_channels, eps, momentum, True, True)
        self._add_bn(bn, freeze_bn, qconfig)

    def forward(self, input: Any) -> Any:
        """Batch norm of the convolution with the rounded weight."""
        return self._normed(lambda weight: self._conv_forward(input, weight, None))  # type: ignore[attr-defined]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a fused float one with a configuration."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        conv, bn = mod[0], mod[1]
        made = cls(**geometry(conv), eps=bn.eps, momentum=bn.momentum, freeze_bn=False, qconfig=mod.qconfig)
        return _copy_bn(take_parameters(made, conv), bn)

    def to_float(self) -> Any:
        """The float convolution with batch norm folded in; with relu where the layer has it."""
        made = self._FLOAT_CONV_MODULE(**geometry(self))  # type: ignore[misc]
        weight, bias = fuse_conv_bn_weights(
            self.weight, self.bias, self.bn.running_mean, self.bn.running_var, self.bn.eps, self.bn.weight, self.bn.bias
        )
        made.weight, made.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
        if self._FLOAT_RELU_MODULE is None:
            return made.train(self.training)
        return self._FUSED_FLOAT_MODULE(made, self._FLOAT_RELU_MODULE()).train(self.training)  # type: ignore[misc]


class _WithReLU:
    """A part of layers that end with relu."""

    def forward(self, input: Any) -> Any:
        """`relu` of the layer."""
        return F.relu(super().forward(input))  # type: ignore[misc]


class ConvBn1d(_ConvBnNd, nn.Conv1d, nni._FusedModule):
    """A convolution over one dimension with batch norm: see `nn.Conv1d` and `nn.BatchNorm1d`."""

    _dims, _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = 1, nni.ConvBn1d, nn.Conv1d, nn.BatchNorm1d


class ConvBn2d(_ConvBnNd, nn.Conv2d, nni._FusedModule):
    """A convolution over two dimensions with batch norm: see `nn.Conv2d` and `nn.BatchNorm2d`."""

    _dims, _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = 2, nni.ConvBn2d, nn.Conv2d, nn.BatchNorm2d


class ConvBn3d(_ConvBnNd, nn.Conv3d, nni._FusedModule):
    """A convolution over three dimensions with batch norm: see `nn.Conv3d` and `nn.BatchNorm3d`."""

    _dims, _FLOAT_MODULE, _FLOAT_CONV_MODULE, _FLOAT_BN_MODULE = 3, nni.ConvBn3d, nn.Conv3d, nn.BatchNorm3d


class ConvBnReLU1d(_WithReLU, ConvBn1d):
    """`ConvBn1d` with relu."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = nni.ConvBnReLU1d, nn.ReLU, nni.ConvReLU1d


class ConvBnReLU2d(_WithReLU, ConvBn2d):
    """`ConvBn2d` with relu."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = nni.ConvBnReLU2d, nn.ReLU, nni.ConvReLU2d


class ConvBnReLU3d(_WithReLU, ConvBn3d):
    """`ConvBn3d` with relu."""

    _FLOAT_MODULE, _FLOAT_RELU_MODULE, _FUSED_FLOAT_MODULE = nni.ConvBnReLU3d, nn.ReLU, nni.ConvReLU3d


class _ConvReLU(_WithReLU):
    _FLOAT_MODULE: Any = None
    _FLOAT_CONV_MODULE: Any = None
    _FLOAT_BN_MODULE: Any = None
    _FLOAT_RELU_MODULE: Any = nn.ReLU

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a fused float one with a configuration."""
        conv, qconfig = checked(cls, mod, cls.__name__, (cls._FLOAT_MODULE,))
        return take_parameters(cls(**geometry(conv), qconfig=qconfig), conv)  # type: ignore[call-arg]

    def to_float(self) -> Any:
        """The fused float layer."""
        conv = take_parameters(self._FLOAT_CONV_MODULE(**geometry(self)), self)
        return self._FLOAT_MODULE(conv, nn.ReLU()).train(self.training)  # type: ignore[attr-defined]


class ConvReLU1d(_ConvReLU, nnqat.Conv1d, nni._FusedModule):
    """A convolution over one dimension with relu: see `nn.Conv1d`."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = nni.ConvReLU1d, nn.Conv1d


class ConvReLU2d(_ConvReLU, nnqat.Conv2d, nni._FusedModule):
    """A convolution over two dimensions with relu: see `nn.Conv2d`."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = nni.ConvReLU2d, nn.Conv2d


class ConvReLU3d(_ConvReLU, nnqat.Conv3d, nni._FusedModule):
    """A convolution over three dimensions with relu: see `nn.Conv3d`."""

    _FLOAT_MODULE, _FLOAT_CONV_MODULE = nni.ConvReLU3d, nn.Conv3d


def update_bn_stats(mod: Any) -> None:
    """Lets the statistics of a layer with batch norm inside follow; for `Module.apply`."""
    if isinstance(mod, _BatchNormed):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """Freezes the statistics of a layer with batch norm inside; for `Module.apply`."""
    if isinstance(mod, _BatchNormed):
        mod.freeze_bn_stats()


def __dir__() -> list[str]:
    return __all__
