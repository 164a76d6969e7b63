"""The part of `gradcheck` that checks forward mode: Jacobians by rows, from dual inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor, stack, zeros, zeros_like
from . import forward_ad


def _as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_inexact(value):
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _rows(function, inputs, tangents, check_dtypes):
    """The tangents of the outputs, flat, for tangents of the inputs by number."""
    with forward_ad.dual_level():
        # Plain views, not the leaves: nothing is recorded for it, and functions may change it in place.
        given = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        duals = [forward_ad.make_dual(x, tangents[i]) if i in tangents else x for i, x in enumerate(given)]
        rows = []
        for output in _as_tuple(function(*duals)):
            if not _is_inexact(output):
                continue
            primal, tangent = forward_ad.unpack_dual(output)
            if tangent is not None and check_dtypes and tangent.dtype != primal.dtype:
                raise _error("Gradient has dtype mismatch")
            rows.append((zeros_like(primal) if tangent is None else tangent).detach().clone().reshape(-1))
        return rows


def _error(message):
    from .gradcheck import GradcheckError

    return GradcheckError(message)


def forward_jacobians(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    active: list[tuple[int, Tensor]],
    which: int,
    check_dtypes: bool,
) -> list[Tensor]:
    """For each output, the Jacobian by input number `which` of `active`: a row for each of its elements."""
    number, x = active[which]
    zero = {i: zeros_like(t.detach()) for i, t in active}
    rows = []
    for index in itertools.product(*map(range, x.shape)):
        row = None
        for unit in (1.0, 1j) if x.is_complex() else (1.0,):
            tangents = {i: z.clone() for i, z in zero.items()}
            tangents[number][index] = unit
            values = _rows(function, inputs, tangents, check_dtypes)
            row = values if row is None else [a + 1j * b for a, b in zip(row, values, strict=True)]
        rows.append(row)
    if not rows:
        return []
    return [stack(column) if column[0].numel() else zeros(0, 0, dtype=x.dtype) for column in zip(*rows, strict=True)]


def directional(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    active: list[tuple[int, Tensor]],
    which: int,
    check_dtypes: bool,
    tangent: Tensor,
) -> list[Tensor]:
    """For each output, flat, its derivative where input number `which` of `active` moves along `tangent`."""
    tangents = {i: zeros_like(t.detach()) for i, t in active}
    tangents[active[which][0]] = tangent
    return _rows(function, inputs, tangents, check_dtypes)


def check_undefined(function: Callable[..., Any], inputs: tuple[Any, ...], active: list[tuple[int, Tensor]]) -> None:
    """A tangent that is missing must count as zeros.

    Raises:
        GradcheckError: the results differ.
    """
    for number, x in active:
        if not x.numel():
            continue
        one = zeros_like(x.detach()) + 1.0
        zero = {i: zeros_like(t.detach()) for i, t in active if i != number}
        alone = _rows(function, inputs, {number: one}, False)
        if not zero:
            continue
        for a, b in zip(alone, _rows(function, inputs, {**zero, number: one.clone()}, False), strict=True):
            if not bool(_C.ops["isclose"](a, b, equal_nan=True).all().item()):
                raise _error(
                    "Expected the forward gradients of a function to be the same where the tangent of an input is missing "
                    "and where it is zero."
                )
