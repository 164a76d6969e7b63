"""Gradients that are sparse tensors: what the engine asks when it adds them, and the gradient of looked-up rows."""

from __future__ import annotations

import threading

from .. import _C
from ..autograd import _engine
from ._grads import Opaque
from ._tensor import coo, is_sparse

_turn = threading.Lock()


def add(a, b):
    """The sum of two gradients, sparse if both are, masked if one is."""
    if _engine.Opaque.wraps(a) or _engine.Opaque.wraps(b):
        from .._dispatch import _held

        return _held.added(a, b)
    masked = [t for t in (a, b) if not is_sparse(t) and isinstance(t, Opaque)]
    if masked:
        return masked[0]._added(b if masked[0] is a else a)
    return b + a if is_sparse(a) and not is_sparse(b) else a + b


def accumulate(leaf, grad):
    """Adds to `leaf.grad`: in place, unless the sum is recorded or a dense gradient comes to a sparse one."""
    if _engine.Opaque.wraps(leaf) or _engine.Opaque.wraps(grad) or _engine.Opaque.wraps(leaf.grad):
        from .._dispatch import _held

        old, grad = leaf.grad, _held.released(grad)
        grad = grad if _C.is_grad_enabled() else grad.detach()
        leaf.grad = grad if old is None else old + grad
        return
    masked = not is_sparse(grad) and isinstance(grad, Opaque)
    grad = grad._as_result() if masked else grad
    with _turn:
        old = leaf.grad
        if old is None:
            leaf.grad = grad if _C.is_grad_enabled() else grad.detach().clone()
        elif _C.is_grad_enabled() or masked or (is_sparse(old) and not is_sparse(grad)):
            leaf.grad = old + grad if masked else add(old, grad)
        else:
            old.add_(grad)


def of_rows(index, values, rows, padding):
    """The gradient of a matrix of `rows` rows of which those at `index` were read, but for the row `padding`.

    Args:
        index (Tensor): whole numbers of any shape.
        values (Tensor): the gradients of the rows, one for each index: shape (..., columns).
        padding (int): -1 for none.
    """
    index = index.reshape(-1).long()
    values = values.reshape(index.shape[0], values.shape[-1])
    if padding >= 0:
        kept = (index != padding).nonzero()[:, 0]
        index, values = index.index_select(0, kept), values.index_select(0, kept)
    return coo(index[None], values, (rows, values.shape[1]))
