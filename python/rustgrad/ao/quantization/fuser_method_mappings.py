"""Which modules are fused, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn import intrinsic as nni
from .utils import get_combined_dict

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
    "get_fuser_method_new",
]

_CONV_BN = {nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}
_CONV_BN_RELU = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
_CONV_RELU = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}


def _check_modes(modules):
    if len({module.training for module in modules}) > 1:
        names = " and ".join(type(m).__name__ for m in modules)
        raise AssertionError(f"{names} both must be in the same mode (train or eval).")


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """A convolution with its batch norm: for training a `ConvBn` of both, else one convolution.

    Raises:
        AssertionError: the modules are in different modes, or do not fit.
        NotImplementedError: no fused class for training.
    """
    _check_modes((conv, bn))
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
    if not bn.affine or not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with affine and tracking_running_stats set to True")
    fused = _CONV_BN.get(type(conv))
    if fused is None:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return fused(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """A convolution with batch norm and relu: as `fuse_conv_bn`."""
    _check_modes((conv, bn, relu))
    if not is_qat:
        fused = _CONV_RELU.get(type(conv))
        if fused is None:
            raise NotImplementedError(f"Cannot fuse eval modules: {(conv, bn, relu)}")
        return fused(fuse_conv_bn_eval(conv, bn), relu)
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv2d must match num_features of BatchNorm2d")
    if not bn.affine or not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm2d with affine and tracking_running_stats set to True")
    fused = _CONV_BN_RELU.get(type(conv))
    if fused is None:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn, relu)}")
    return fused(conv, bn, relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """A linear layer with batch norm: as `fuse_conv_bn`."""
    _check_modes((linear, bn))
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    if bn.num_features != linear.out_features:
        raise AssertionError("Output features of Linear must match num_features of BatchNorm1d")
    if not bn.affine or not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm1d with affine and tracking_running_stats set to True")
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """A transposed convolution with batch norm, in `eval` mode. Exception: in training."""
    _check_modes((convt, bn))
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential_wrapper2(sequential):
    """A rule that puts two modules into a class of fused ones."""

    def fuser_method(is_qat: bool, m1: Any, m2: Any) -> Any:
        return sequential(m1, m2)

    return fuser_method


def _table():
    table: dict[tuple[type, ...], Callable[..., Any]] = {}
    for n in "123":
        conv, bn = getattr(nn, f"Conv{n}d"), getattr(nn, f"BatchNorm{n}d")
        table[conv, bn], table[conv, bn, nn.ReLU] = fuse_conv_bn, fuse_conv_bn_relu
        table[conv, nn.ReLU] = _sequential_wrapper2(_CONV_RELU[conv])
        table[getattr(nn, f"ConvTranspose{n}d"), bn] = fuse_convtranspose_bn
    table[nn.Linear, nn.BatchNorm1d] = fuse_linear_bn
    table[nn.Linear, nn.ReLU] = _sequential_wrapper2(nni.LinearReLU)
    table[nn.BatchNorm2d, nn.ReLU] = _sequential_wrapper2(nni.BNReLU2d)
    table[nn.BatchNorm3d, nn.ReLU] = _sequential_wrapper2(nni.BNReLU3d)
    return table


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _table()


def get_fuser_method(op_list: tuple[Any, ...], additional_fuser_method_mapping: dict[Any, Any] | None = None) -> Any:
    """The rule that fuses modules of these classes. AssertionError: there is none."""
    every = get_combined_dict(_DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping or {})
    found = every.get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: dict[Any, Any]) -> Any:
    """The rule that fuses a pattern, from a table of patterns. AssertionError: there is none."""
    found = fuser_method_mapping.get(op_pattern)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_pattern} ")
    return found


def __dir__() -> list[str]:
    return __all__
