"""`map`: a function of each element along the first dimension. PyTorch's tracers keep it in a graph; here it runs as Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Tensor, stack
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """The results of `f(x, *args)` for each `x` along the first dimension of `xs`, stacked.

    Args:
        f (function): gives a tensor, or a tree of tensors and None.
        xs: a tensor, or a tree of tensors of equal length.
        args: further arguments of each call.

    Raises:
        RuntimeError: `xs` are no tensors, are empty, or differ in length.
    """
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [tuple(x.shape) for x in leaves]
    if not all(shapes) or len({shape[0] for shape in shapes}) > 1:
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    if shapes[0][0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    found = [f(tree_unflatten(list(part), spec), *args) for part in zip(*leaves, strict=True)]
    return _stacked(found)


def _stacked(results: list[Any]) -> Any:
    """A tree of the stacked leaves of equal trees; a leaf that is None in the first is None."""
    first, spec = tree_flatten(results[0])
    columns = zip(*(tree_flatten(one)[0] for one in results), strict=True)
    made = [None if leaf is None else stack(column) for leaf, column in zip(first, columns, strict=True)]
    return tree_unflatten(made, spec)
