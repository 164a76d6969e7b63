"""Rules of ops on lists of tensors, by which optimizers step and gradients are clipped: they run on the values."""

from __future__ import annotations

from .._C import ops
from ._convert import coalesce
from ._tensor import CooTensor, is_sparse, refuse, with_value


def _values(tensors):
    return [t._value if is_sparse(t) else t for t in tensors]


def fused_sgd(params, grads, buffers, **options):
    """A step of SGD on tensors of which some are sparse; their gradients and momenta have their indices."""
    if options["is_first_step"]:
        for param, buffer in zip(params, buffers, strict=False):
            if is_sparse(param):
                buffer._set(with_value(param, ops["zeros_like"](param._value)))
    for others in (grads, buffers):
        for param, other in zip(params, others, strict=False):
            if is_sparse(param) is not is_sparse(other) or is_sparse(param) and not _alike(param, other):
                refuse("SGD with indices that differ from those of the parameter", param.layout)
    return ops["_fused_sgd_"](_values(params), _values(grads), _values(buffers), **options)


def _alike(a, b):
    pairs = zip(a._pattern(), b._pattern(), strict=True)
    return a.layout is b.layout and all(x is y or x.shape == y.shape and bool((x == y).all()) for x, y in pairs)


def foreach_norm(tensors, ord=2):
    """The norm of each tensor: of its elements, where values at equal indices are added."""
    return ops["_foreach_norm"](_values([coalesce(t) if isinstance(t, CooTensor) else t for t in tensors]), ord)


def foreach_mul_(tensors, other):
    """Each tensor times a number, in place."""
    return ops["_foreach_mul_"](_values(tensors), other)
