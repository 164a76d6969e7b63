"""Batch normalisation whose statistics are those of the batches of all processes: what `nn.SyncBatchNorm` does in training."""

from __future__ import annotations

from .._base import Tensor, cat, float32, stack, tensor
from ..autograd.grad_mode import no_grad
from .nn.functional import all_gather
from .process_group import ProcessGroup

__all__ = ["normalize"]


def normalize(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: ProcessGroup,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the batches of a group; running statistics are updated.

    Args:
        x (Tensor): `(N, C, *)`; N and * may differ between the processes, and N be 0.

    Raises:
        ValueError: the processes have one value per channel together.
    """
    wide = x if x.element_size() >= 4 else x.to(float32)
    channels = x.shape[1]
    count = x.numel() // channels
    dims = [0, *range(2, x.dim())]
    shape = [1, channels] + [1] * (x.dim() - 2)
    # Each process's own mean and squared deviations: sums of squares would lose digits.
    own_mean = wide.sum(dims) / max(count, 1)
    own_squares = (wide - own_mean.view(shape)).square().sum(dims)
    told = all_gather(cat([own_mean, own_squares, tensor([count], dtype=wide.dtype, device=x.device)]), group)
    rows = stack(told)
    counts = rows[:, -1:].detach()
    total = float(counts.double().sum())
    if total <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(x.shape)}")
    means, squares = rows[:, :channels], rows[:, channels:-1]
    mean = (means * counts).sum(0) / total
    spread = (squares + counts * (means - mean).square()).sum(0)
    if running_mean is not None and running_var is not None:
        with no_grad():
            running_mean.lerp_(mean.detach().to(running_mean.dtype), momentum)
            running_var.lerp_((spread.detach() / (total - 1)).to(running_var.dtype), momentum)
    scale = (spread / total + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    made = (wide - mean.view(shape)) * scale.view(shape)
    if bias is not None:
        made = made + bias.view(shape)
    return made.to(x.dtype)
