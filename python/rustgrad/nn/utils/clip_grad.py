"""Clipping of gradients, in place."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable

from ..._absent import getattr_of
from ..._base import Tensor, ops, stack, tensor
from ...autograd.grad_mode import no_grad

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


_norms, _multiply_each = ops["_foreach_norm"], ops["_foreach_mul_"]
_limit_below, _limit_above = ops["_foreach_clamp_min_"], ops["_foreach_clamp_max_"]


def _grads(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [grad for p in parameters if (grad := p.grad) is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    Args:
        tensors (Tensor or iterable of Tensor).
        norm_type (float): the p of the norm; `inf` for the maximum.
        error_if_nonfinite (bool): raise RuntimeError if the norm is NaN or infinite.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return tensor(0.0)
    where = tensors[0].device
    total = _norms([stack([norm.to(where) for norm in _norms(tensors, norm_type)])], norm_type)[0]
    if error_if_nonfinite and (total.isnan() | total.isinf()).item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients by min(1, max_norm / (total_norm + 1e-6))."""
    _multiply_each(_grads(parameters), (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients in place so that their total norm is at most `max_norm`; returns the norm before.

    Args:
        parameters (Tensor or iterable of Tensor): their `.grad` is clipped; those without one are skipped.
        max_norm (float): the largest norm.
        norm_type (float): the p of the norm; `inf` for the maximum.
        error_if_nonfinite (bool): raise RuntimeError if the norm is NaN or infinite.
    """
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        is_generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total_norm = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        category=FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamps every gradient in place to [-clip_value, clip_value]."""
    grads, clip_value = _grads(parameters), float(clip_value)
    _limit_below(grads, -clip_value)
    _limit_above(grads, clip_value)


__getattr__ = getattr_of(__name__)
