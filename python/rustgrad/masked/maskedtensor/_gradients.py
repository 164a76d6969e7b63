"""Where the graph of dense tensors meets masked ones: the gradient of a dense operand is masked as its result."""

from __future__ import annotations

from ... import _C, _formats
from ..._C import ops
from ...autograd.function import Function
from .core import MaskedTensor, made


class Masked(MaskedTensor):
    """A gradient on its way: what the engine takes for a formula are its elements, zero where it is masked out."""

    def to_dense(self, *args, **kwargs):
        """The elements, zero where they are masked out."""
        return self.to_tensor(0)

    def _as_result(self):
        return made(self._value, self._mask)


class _Entrance(Function):
    """The identity; the gradient is a masked tensor."""

    @staticmethod
    def forward(ctx, data, mask, shape):
        ctx.mask, ctx.sizes = mask, data.shape
        return data.expand(shape)

    @staticmethod
    def backward(ctx, grad):
        mask = ctx.mask
        # A masked-out element may have any gradient, also NaN.
        grad = ops["where"](mask, grad, ops["zeros"]((), dtype=grad.dtype, device=grad.device)).sum_to_size(ctx.sizes)
        return made(grad, _reduced(mask, ctx.sizes), Masked), None, None


def _reduced(mask, sizes):
    """Whether any of the elements that are added up to one of a smaller shape is let through."""
    extra = mask.dim() - len(sizes)
    wide = [i for i, n in enumerate(mask.shape) if i < extra or (n != 1 and sizes[i - extra] == 1)]
    return mask.any(wide, keepdim=True).reshape(sizes) if wide else mask


def entered(data, mask, shape=None):
    """Dense data as part of a masked tensor.

    Args:
        mask (Tensor): the mask of the result.
        shape (tuple): to which the data is broadcast, that of the mask by default.
    """
    if not data.requires_grad or data.layout is not _formats.strided or not _C.is_grad_enabled():
        return data
    return _Entrance.apply(data, mask, tuple(mask.shape if shape is None else shape))
