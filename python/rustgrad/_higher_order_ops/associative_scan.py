"""`associative_scan`: an inclusive scan with any associative function, in a logarithmic number of calls.

Neighbours are combined in pairs, the half as long sequence is scanned, and its results give the elements between. Everything
is made of differentiable ops, so gradients of any order follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Tensor, cat, stack
from ..func import vmap
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Returns `xs` with, at each position of a dimension, all elements up to it combined.

    Args:
        combine_fn: an associative function of two trees like `xs`.
        xs: a tensor, or a tree of tensors that are equally long in the dimension.
        dim (int): the dimension.
        reverse (bool): combine the elements from a position to the end.
        combine_mode (str): "pointwise", where the function gets many positions at once, or "generic", where it sees one.

    Example:
        >>> associative_scan(lambda a, b: a * b, torch.tensor([1, 2, 3, 4]), 0)
        tensor([ 1,  2,  6, 24])
    """
    leaves, spec = tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    if combine_mode == "generic":
        combine_fn = vmap(combine_fn)
    moved = [x.movedim(dim, 0) for x in leaves]
    if len({len(x) for x in moved}) > 1:
        raise ValueError(
            f"associative_scan: xs differ in length along dimension {dim}: {[tuple(x.shape) for x in leaves]}"
        )
    if reverse:
        moved = [x.flip(0) for x in moved]

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        combined, tree = tree_flatten(combine_fn(tree_unflatten(a, spec), tree_unflatten(b, spec)))
        want, got = [[tuple(getattr(x, "shape", ())) for x in part] for part in (a, combined)]
        if tree != spec or want != got:
            raise RuntimeError(
                "associative_scan: combine_fn must return a tree of tensors like its arguments; "
                f"expected shapes {want}, got {got}"
            )
        return combined

    made = _scan(combine, moved)
    if reverse:
        made = [x.flip(0) for x in made]
    return tree_unflatten([x.movedim(0, dim) for x in made], spec)


def _check(combine_fn: Any, leaves: list[Any], dim: Any, reverse: Any, combine_mode: Any) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")


def _scan(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]) -> list[Tensor]:
    n = len(xs[0])
    if n < 2:
        return xs
    odd = _scan(combine, combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    rest = [x[2::2] for x in xs]
    if len(rest[0]):
        rest = combine([x[: len(r)] for x, r in zip(odd, rest, strict=True)], rest)
    return [_interleave(cat((x[:1], r)), o) for x, r, o in zip(xs, rest, odd, strict=True)]


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    """The elements of two sequences in turn; the first may have one more."""
    pairs = stack((even[: len(odd)], odd), 1).flatten(0, 1)
    return pairs if len(even) == len(odd) else cat((pairs, even[len(odd) :]))
