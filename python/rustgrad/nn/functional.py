"""`nn.functional`: the functions behind the modules.

They are ops of the table (`nn.functional.*`); the functions here take Python objects: other functions, options.
"""

from __future__ import annotations

import warnings

from .._absent import getattr_of
from .._base import ops, sigmoid, tanh
from .._C import Tensor
from ..overrides import overridable
from . import _pooling, grad
from ._attention import (  # the private ones too: subclasses of PyTorch's layers call them
    _canonical_mask,  # noqa: F401
    _mha_shape_check,  # noqa: F401
    _none_or_dtype,  # noqa: F401
    multi_head_attention_forward,
)
from ._grouped import grouped_mm
from ._losses import linear_cross_entropy, triplet_margin_with_distance_loss
from ._norms import batch_norm, group_norm, instance_norm, local_response_norm
from ._pooling import *  # noqa: F403
from ._resizing import upsample, upsample_bilinear, upsample_nearest

__all__ = [
    "batch_norm",
    "conv_tbc",
    "grad",
    "group_norm",
    "grouped_mm",
    "instance_norm",
    "legacy_reduction",
    "linear_cross_entropy",
    "local_response_norm",
    "multi_head_attention_forward",
    "sigmoid",
    "tanh",
    "triplet_margin_with_distance_loss",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
__all__ += _pooling.__all__


def legacy_reduction(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The `reduction` that the legacy arguments mean, with the deprecation warning."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


@overridable
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0, *, out: Tensor | None = None) -> Tensor:
    """`conv1d` of a sequence `(time, batch, in_channels)`.

    Args:
        weight (Tensor): `(taps, in_channels, out_channels)`.
        bias (Tensor): `(out_channels,)`.
        pad (int): zeros at both ends.
        out (Tensor): gets the result.

    Raises:
        RuntimeError: tensors of other ranks, or channels that differ.
    """
    for name, tensor, rank in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        if tensor.dim() != rank:
            raise RuntimeError(f"conv_tbc: {name} must have {rank} dims, got {tensor.dim()}")
    result = ops["conv1d"](input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    result = result.permute(2, 0, 1).contiguous()
    return result if out is None else out.resize_(result.shape).copy_(result)


def _inplace(function):
    def wrapper(input, *args, **kwargs):
        return function(input, *args, **kwargs, inplace=True)

    wrapper.__name__ = wrapper.__qualname__ = f"{function.__name__}_"
    wrapper.__doc__ = f"In-place form of `{function.__name__}`."
    wrapper.in_place_of = function
    return wrapper


def _fill_namespace(names):
    """Adds the ops of the table, unless a function above has the name, and in-place forms under their own names."""
    for name, op in ops.items():
        public = name.removeprefix("nn.functional.")
        if public != name and public[0] != "_":
            names.setdefault(public, op)
    for name in ("relu", "elu", "selu", "celu", "leaky_relu", "rrelu", "hardtanh", "threshold"):
        if name in names:
            names.setdefault(name + "_", _inplace(names[name]))
    names["__all__"] = sorted({*names["__all__"], *(n.removeprefix("nn.functional.") for n in ops if "nn.f" in n)})


_fill_namespace(globals())


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
