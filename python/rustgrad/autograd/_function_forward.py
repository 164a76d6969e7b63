"""Forward mode of custom functions: their `jvp` maps tangents of inputs to tangents of outputs."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor, zeros_like
from . import forward_ad


def propagate(cls: Any, ctx: Any, args: tuple[Any, ...], raw: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """Gives `outputs`, which the function returned as `raw`, their tangents, at every level that an argument has one at.

    Outer levels come first, and `jvp` runs with outer levels only, so that what it computes has tangents there.

    Raises:
        RuntimeError: what `jvp` returns does not fit the outputs.
        NotImplementedError: the function has no `jvp`.
    """
    for level in _C._forward_levels():
        tangents = [_C._tangent(a, level) if isinstance(a, Tensor) else None for a in args]
        if all(t is None for t in tangents):
            continue
        versions = [None if t is None else t._version for t in tangents]
        seen = _C._forward_outside(level)
        ctx._in_jvp = True
        try:
            made = cls.jvp(ctx, *_materialised(ctx, args, tangents))
            made = made if isinstance(made, tuple) else (made,)
            _check(made, outputs)
            for i, (out, tangent) in enumerate(zip(outputs, made, strict=True)):
                if isinstance(raw[i], Tensor):
                    _set(ctx, level, (args, tangents, versions), (i, raw[i], out, tangent))
        finally:
            ctx._in_jvp = False
            _C._forward_restore(seen)


def _materialised(ctx, args, tangents):
    """The tangents that `jvp` gets: zeros for those that are missing, unless the context has that turned off."""
    for a, t in zip(args, tangents, strict=True):
        absent = t is None and isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex())
        yield zeros_like(a) if absent and ctx.materialize_grads else t


def _check(made, outputs):
    if len(made) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(made)})"
        )
    for i, tangent in enumerate(made):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {i}.")


def _among(value, values):
    return next((i for i, v in enumerate(values) if v is value), None)


def _set(ctx, level, inputs, result):
    (args, tangents, versions), (i, raw, out, tangent) = inputs, result
    constant = _among(raw, ctx._non_differentiable) is not None
    if constant or not (raw.is_floating_point() or raw.is_complex()):
        if tangent is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        return
    if _among(raw, ctx._dirty) is not None:
        place = _among(raw, args)
        if place is None:
            raise RuntimeError(
                "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to "
                "pass it to mark_dirty()."
            )
        if tangents[place] is not None:
            _check_written(tangent, tangents[place], versions[place])
        elif tangent is not None:
            _C._write_tangent(out, level, tangent)
        return
    if tangent is None:
        return
    source = next((t for a, t in zip(args, tangents, strict=True) if t is not None and _is_view_of(out, a)), None)
    # The transforms of `func` take any tangent for a view, as PyTorch's do.
    linked = source is not None and (level == forward_ad._number or _is_view_of(tangent, source))
    if linked:
        _check_view(tangent, source)
    _C._set_tangent(out, level, tangent, linked)


def _is_view_of(out, argument):
    base = out._base
    return base is not None and (base is argument or base is argument._base)


def _check_written(tangent, given, version):
    if tangent is None or tangent._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an "
            "input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(tangent, source):
    """A view's tangent must be a view of the tangent of what it is a view of."""
    base = tangent._base
    if base is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    if source._base is not None and base is not source._base:
        raise RuntimeError(
            "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad "
            "input."
        )
    if source._base is None and base is not source:
        raise RuntimeError(
            "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
        )
