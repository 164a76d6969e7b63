"""Batch normalisation over one, two and three dimensions, and the base that it shares with instance normalisation."""

from __future__ import annotations

import sys
from typing import Any

from ..._absent import getattr_of
from ..._base import Tensor, empty, ones, tensor, zeros
from ..._base import int64 as _int64
from ..._C import dtype
from ..._typing import DeviceLike
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Common base: settings, parameters, running statistics, `extra_repr`."""

    weight: Parameter | Any
    bias: Parameter | Any
    running_mean: Tensor | Any
    running_var: Tensor | Any
    num_batches_tracked: Tensor | Any

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=_int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets `weight` to ones, `bias` to zeros, and the running statistics to their start."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, *report):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        # Checkpoints of the first version do not have it.
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            known = self.num_batches_tracked is not None and self.num_batches_tracked.device.type != "meta"
            state_dict[key] = self.num_batches_tracked if known else tensor(0, dtype=_int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *report)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        training = self.training
        if training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the average over all batches
                factor = 1.0 / float(self.num_batches_tracked)
        mean, var = self.running_mean, self.running_var
        by_batch = training or (mean is None and var is None)
        if training and not self.track_running_stats:
            mean = var = None
        return self._normalize(input, mean, var, by_batch, factor)

    def _normalize(self, input, mean, var, by_batch, factor):
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Parameters and statistics are materialized by the channels of the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=_int64, device=device)

    def reset_parameters(self) -> None:
        """Sets parameters and running statistics to their start, once they are initialized."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Materializes parameters and running statistics for inputs like `input`, whose channels are dimension 1."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        lazy = [self.weight, self.bias] if self.affine else []
        if self.track_running_stats:
            lazy += [self.running_mean, self.running_var]
        for value in lazy:
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    r"""Normalises each channel over the batch: :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} * weight + bias`.

    In training the statistics are those of the batch, and the running statistics move towards them by `momentum`, the
    variance unbiased; in evaluation they are the running ones.

    Args:
        num_features (int): C, the number of channels.
        eps (float): added to the variance.
        momentum (float or None): the weight of a batch in the running statistics; None averages over all batches.
        affine (bool): whether there are `weight` (ones at first) and `bias` (zeros).
        track_running_stats (bool): without, the statistics of the batch are used in evaluation too.
        bias (bool): whether there is a bias, if `affine`.

    Shape:
        input and output `(N, C)` or `(N, C, L)`.

    Raises:
        ValueError: the input has another number of dimensions; in training, there is one value per channel.

    Source: Ioffe, Szegedy, "Batch Normalization", arXiv:1502.03167.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for images.

    Shape:
        input and output `(N, C, H, W)`.

    Raises:
        ValueError: the input has another number of dimensions; in training, there is one value per channel.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for volumes.

    Shape:
        input and output `(N, C, D, H, W)`.

    Raises:
        ValueError: the input has another number of dimensions; in training, there is one value per channel.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` whose `num_features` are the channels of the first input; it is a `BatchNorm1d` from then on."""

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` whose `num_features` are the channels of the first input; it is a `BatchNorm2d` from then on."""

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` whose `num_features` are the channels of the first input; it is a `BatchNorm3d` from then on."""

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """In training, batch normalisation over the batches of all processes of a group, which all call it.

    Args:
        process_group (ProcessGroup): by default the default group; without one, or with one process, it is `BatchNorm`.
        The others are those of `BatchNorm2d`.

    Shape:
        input and output `(N, C, *)`; N may differ between the processes.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any | None = None,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalize(self, input, mean, var, by_batch, factor):
        # A group that exists was made by that module.
        groups = sys.modules.get("rustgrad.distributed.group")
        if not (by_batch and self.training and groups is not None and groups.is_initialized()):
            return super()._normalize(input, mean, var, by_batch, factor)
        group = groups._checked(self.process_group)
        if group.size() == 1:
            return super()._normalize(input, mean, var, by_batch, factor)
        from ...distributed.sync_norm import normalize

        return normalize(input, mean, var, self.weight, self.bias, factor, self.eps, group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any | None = None) -> Module:
        """The module with every `BatchNorm*d` in it replaced by a `SyncBatchNorm` with the same parameters and state."""
        converted = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean, converted.running_var = module.running_mean, module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
            if hasattr(module, "qconfig"):
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


__getattr__ = getattr_of(__name__)
