"""`masked_tensor`, always a leaf, and `as_masked_tensor`, which is differentiable."""

from __future__ import annotations

from typing import Any

from ._gradients import Call
from .core import MaskedTensor, checked

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A leaf with a copy of the data and of the mask.

    Args:
        data (Tensor): dense, `sparse_coo` or `sparse_csr`, of floats of 16, 32 or 64 bits, signed integers or bools.
        mask (Tensor): of bools in the shape and layout of `data`, and with its indices; True where an element counts.
        requires_grad (bool): whether gradients are computed, which are masked tensors.

    Raises:
        TypeError: no tensors, or another dtype or layout.
        ValueError: another shape of the mask, or other indices.
        RuntimeError: `requires_grad` of integers.
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """As `masked_tensor`, with the history of `data`: the gradient of a dense leaf is a masked tensor then.

    Args:
        data (Tensor): see `masked_tensor`.
        mask (Tensor): see `masked_tensor`.
    """
    data, mask = checked(data, mask)
    mask, call = mask.detach().clone(), Call()
    return call.give(call.enter(data, mask).clone(), mask)
