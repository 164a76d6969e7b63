"""`scan`: a loop that carries a state along a dimension and keeps what each turn gives. Here it runs as Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Tensor, empty
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .map import _stacked

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
    length: int | None = None,
) -> tuple[Any, Any]:
    """The last state of `state, y = combine_fn(state, x)` over a dimension of `xs`, and all `y`, stacked in that dimension.

    Args:
        combine_fn (function): the next state has the structure, shapes and dtypes of the state; `y` is any tree of tensors.
        init: the first state, a tree of tensors.
        xs: a tensor, or a tree of tensors that are equally long in the dimension; None if `length` is given.
        dim (int): the dimension.
        reverse (bool): whether to begin at the end.
        length (int): the number of turns, where `xs` has no tensors: `x` is None then.

    Raises:
        RuntimeError: arguments that are none of these, or a next state unlike the state.

    Example:
        >>> scan(lambda total, x: (total + x, total + x), torch.zeros(()), torch.arange(4.0))
        (tensor(6.), tensor([0., 1., 3., 6.]))
    """
    leaves, spec = tree_flatten(xs)
    _check(combine_fn, init, dim, reverse, length)
    if not any(isinstance(x, Tensor) for x in leaves):
        if length is None:
            return init, []
        turns: list[Any] = [None] * length
        place, sample = 0, None
    else:
        place = _dimension(leaves, dim, length)
        moved = [x.movedim(place, 0) for x in leaves]
        turns = [tree_unflatten(list(part), spec) for part in zip(*moved, strict=True)]
        sample = None if turns else tree_unflatten([x.new_zeros(x.shape[1:]) for x in moved], spec)
    if not turns:
        _, y = combine_fn(init, sample)
        nothing = lambda t: empty((0, *t.shape), dtype=t.dtype, device=t.device).movedim(0, place)  # noqa: E731
        return init, tree_map(lambda t: nothing(t) if isinstance(t, Tensor) else t, y)
    state, found = init, []
    for x in reversed(turns) if reverse else turns:
        after, y = combine_fn(state, x)
        _check_state(state, after)
        state = after
        found.append(y)
    out = _stacked(found[::-1] if reverse else found)
    return state, tree_map(lambda t: t.movedim(0, place) if isinstance(t, Tensor) and place < t.dim() else t, out)


def _check(combine_fn: Any, init: Any, dim: Any, reverse: Any, length: Any) -> None:
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 0):
        raise RuntimeError(f"scan() length must be a non-negative integer, got {length!r}")
    states = tree_flatten(init)[0]
    if not states:
        raise RuntimeError("scan() operator requires init leaves.")
    for t in states:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"All init leaves must be a Tensor but got {t}")


def _dimension(leaves: list[Any], dim: int, length: int | None) -> int:
    """The dimension of all `xs`, counted from the first."""
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"All xs leaves must be a Tensor but got {x}")
    ndim = leaves[0].dim()
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    place = dim % ndim
    if any(x.dim() <= place for x in leaves):
        raise RuntimeError("All xs leaves must have at least 'dim + 1' dimensions")
    sizes = {x.shape[place] for x in leaves}
    if len(sizes) > 1:
        raise RuntimeError("All xs leaves must have the same scan dimension size")
    if length is not None and sizes != {length}:
        raise RuntimeError(f"scan() length={length} does not match xs size along dim={place}: {sizes.pop()}")
    return place


def _check_state(before: Any, after: Any) -> None:
    (old, spec), (new, found) = tree_flatten(before), tree_flatten(after)
    facts = [[(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else t for t in leaves] for leaves in (old, new)]
    if spec != found or facts[0] != facts[1]:
        raise RuntimeError(
            "scan: the state that combine_fn returns must have the structure, shapes and dtypes of the state it gets; "
            f"expected {facts[0]}, got {facts[1]}"
        )
