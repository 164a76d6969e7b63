"""`WeightNormSparsifier`: the blocks of smallest norm become zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...._C import Tensor, ops
from ....nn import functional as F
from ....nn.modules.module import Module
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """Weights are taken in blocks from the first on; some of the blocks lose their smallest weights.

    Args:
        sparsity_level (float): the part of the blocks that is chosen, those of the smallest mean norm.
        sparse_block_shape (tuple): rows and columns of a block; at the ends blocks may be smaller.
        zeros_per_block (int): how many weights of such a block become zero, the smallest. Default: all.
        norm (int or function): 1, 2, or weights -> norm of each. Default: 2.

    Raises:
        NotImplementedError: another norm.
    """

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[Tensor], Tensor] | int | None = None,
    ) -> None:
        if zeros_per_block is None:
            zeros_per_block = math.prod(sparse_block_shape)
        known: dict[Any, Callable[[Tensor], Tensor]] = {None: lambda t: t * t, 1: lambda t: t.abs(), 2: lambda t: t * t}
        if not callable(norm) and norm not in known:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        self.norm_fn = norm if callable(norm) else known[norm]
        super().__init__(
            {
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros_per_block,
            }
        )

    def _make_tensor_mask(self, data: Tensor, sparsity_level: float, block: tuple[int, int]) -> Tensor:
        """Zeros in the chosen blocks of a matrix."""
        if not 0 < sparsity_level < 1:
            return ops["full_like"](data, float(sparsity_level <= 0))
        means = F.avg_pool2d(data[None, None], block, stride=block, ceil_mode=True)[0, 0]
        count = max(0, min(means.numel() - 1, round(sparsity_level * means.numel())))
        chosen = means.flatten().topk(count, largest=False).indices
        kept = ops["ones"](means.numel(), device=data.device).scatter_(0, chosen, 0.0).reshape(means.shape)
        rows, columns = data.shape
        return kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns].contiguous()

    def _make_block_mask(self, data: Tensor, block: tuple[int, int], zeros_per_block: int) -> Tensor:
        """Zeros at the smallest places of each block of a matrix."""
        (rows, columns), (height, width) = data.shape, block
        # What is missing in the last blocks is NaN, the largest of all.
        padded = F.pad(data, (0, -columns % width, 0, -rows % height), value=math.nan)
        shape = (padded.shape[0] // height, height, padded.shape[1] // width, width)
        blocks = padded.reshape(shape).transpose(1, 2).reshape(-1, height * width)
        smallest = blocks.topk(zeros_per_block, dim=1, largest=False).indices
        kept = ops["ones_like"](blocks).scatter_(1, smallest, 0.0)
        kept = kept.reshape(shape[0], shape[2], height, width).transpose(1, 2).reshape(padded.shape)
        return kept[:rows, :columns].contiguous()

    def update_mask(  # type: ignore[override]
        self,
        module: Module,
        tensor_name: str,
        sparsity_level: float,
        sparse_block_shape: tuple[int, int],
        zeros_per_block: int,
        **kwargs: Any,
    ) -> None:
        """Chooses the mask of a matrix by its weights, as they are with the mask."""
        size = math.prod(sparse_block_shape)
        if zeros_per_block > size:
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = ops["ones_like"](mask)
        elif sparsity_level >= 1.0 and zeros_per_block == size:
            mask.data = ops["zeros_like"](mask)
        else:
            norms = self.norm_fn(getattr(module, tensor_name))
            made = self._make_tensor_mask(norms, sparsity_level, sparse_block_shape)
            if zeros_per_block != size:
                made = made.logical_or(self._make_block_mask(norms, sparse_block_shape, zeros_per_block))
            mask.data = made
