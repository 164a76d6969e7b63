"""Instance normalisation over one, two and three dimensions: batch normalisation of each sample by itself."""

from __future__ import annotations

import warnings

from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    _dims: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    # Subclasses define it, as in PyTorch: the dimensions of one sample.
    def _get_no_batch_dim(self):
        return self._dims + 1

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._get_no_batch_dim()
        if input.dim() not in (n, n + 1):
            raise ValueError(f"expected {n}D or {n + 1}D input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            found = [k for k in (prefix + "running_mean", prefix + "running_var") if k in state_dict]
            if found:
                name = type(self).__name__
                names = " and ".join(f'"{k}"' for k in found)
                errors.append(
                    f"Unexpected running stats buffer(s) {names} for {name} with track_running_stats=False. "
                    "If state_dict is a checkpoint saved before 0.4.0, this may be expected "
                    f"because {name} does not track running stats by default since 0.4.0. "
                    "Please remove these keys from state_dict, or set "
                    f"track_running_stats=True in {name} if they are needed."
                )
                for key in found:
                    state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.dim() - self._get_no_batch_dim()
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), "
                    f"but got: {input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        return self._normalised(input.unsqueeze(0)).squeeze(0) if dim == 0 else self._normalised(input)

    def _normalised(self, input):
        by_input = self.training or not self.track_running_stats
        momentum = self.momentum if self.momentum is not None else 0.0
        mean, var = self.running_mean, self.running_var
        return F.instance_norm(input, mean, var, self.weight, self.bias, by_input, momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    r"""Normalises each channel of each sample: :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} * weight + bias`.

    Args:
        num_features (int): C, the number of channels.
        eps (float): added to the variance.
        momentum (float): the weight of a batch in the running statistics.
        affine (bool): whether there are `weight` (ones at first) and `bias` (zeros).
        track_running_stats (bool): whether evaluation uses running statistics, averaged over the samples.
        bias (bool): whether there is a bias, if `affine`.

    Shape:
        input and output `(N, C, L)` or `(C, L)`.

    Raises:
        ValueError: another number of dimensions, or, if `affine`, of channels; one value per channel.

    Source: Ulyanov, Vedaldi, Lempitsky, "Instance Normalization", arXiv:1607.08022.
    """

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for images.

    Shape:
        input and output `(N, C, H, W)` or `(C, H, W)`.
    """

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for volumes.

    Shape:
        input and output `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    _dims = 3


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` whose `num_features` are the first input's size along dimension 1; it is one from then on."""

    cls_to_become = InstanceNorm1d
    _dims = 1


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` whose `num_features` are the first input's size along dimension 1; it is one from then on."""

    cls_to_become = InstanceNorm2d
    _dims = 2


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` whose `num_features` are the first input's size along dimension 1; it is one from then on."""

    cls_to_become = InstanceNorm3d
    _dims = 3
