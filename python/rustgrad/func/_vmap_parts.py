"""`vmap` in the parts that PyTorch's has, for libraries that replace them to map over containers of their own.

Such a library (tensordict) assigns its functions to `_functorch.vmap._process_batched_inputs`, `_create_batched_inputs` and
`_unwrap_batched`, and these call `_add_batch_dim` and `_remove_batch_dim` for the tensors in a container. There they hide and
show a dimension. Here, where a function sees one example, each part is called twice. The first time those calls return *marks*:
tensors of the shape that the caller expects, which name the tensor and the dimension that are meant. The second time they return what the
marks stand for, an example or a batch. A container may keep what it was given, and answer from that: then marks are left in
the tree, and it is built anew without them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .. import _C
from .._base import Tensor, cat
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from . import _vmap

__all__ = ["add_batch_dim", "is_marked", "maybe_remove_batch_dim", "remove_batch_dim", "run"]


class _Mark(NamedTuple):
    """What a mark stands for: the tensor, the dimension of the batch, the level of `vmap`, and whether it is a result."""

    tensor: Tensor
    dim: int | None
    level: int
    result: bool


class _Giving(threading.local):
    """What stands for a tensor and a dimension, by `_Mark`s without their tensor, while parts are called for the second time."""

    def __init__(self) -> None:
        self.known: dict[Any, Tensor] = {}


_KEY = "_vmap_mark"
_giving = _Giving()


def _mark_of(value: Any, level: int, result: bool) -> _Mark | None:
    mark = getattr(value, _KEY, None) if isinstance(value, Tensor) else None
    return mark if mark is not None and (mark.level, mark.result) == (level, result) else None


def _key(mark: _Mark) -> Any:
    return id(mark.tensor), *mark[1:]


def _stand_in(mark: _Mark, make: Callable[[], Tensor]) -> Tensor:
    """What stands for a mark, if that is known, or a new tensor as the mark."""
    if (found := _giving.known.get(_key(mark))) is not None:
        return found
    with _C.DisableTorchFunctionSubclass():
        made = make()
    setattr(made, _KEY, mark)
    return made


def is_marked(value: Tensor) -> bool:
    """Whether a tensor stands for the examples of a batched argument."""
    mark = getattr(value, _KEY, None)
    return mark is not None and not mark.result


def add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """What stands for the examples of a tensor, whose dimension `in_dim` is the batch; of the shape of one example."""
    dim = in_dim % max(tensor.dim(), 1)

    def one_example() -> Tensor:
        shape = [*tensor.shape[:dim], *tensor.shape[dim + 1 :]]
        return tensor.select(dim, 0) if tensor.size(dim) else tensor.new_ones(shape)

    return _stand_in(_Mark(tensor, dim, level, False), one_example)


def remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """What stands for a result, of the shape that it has with the batch at `out_dim`."""
    n = tensor.dim() + 1
    if not -n <= out_dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {out_dim})")
    dim = out_dim % n
    shape = [*tensor.shape[:dim], batch_size, *tensor.shape[dim:]]
    return _stand_in(_Mark(tensor, dim, level, True), lambda: tensor.unsqueeze(dim).expand(shape))


def maybe_remove_batch_dim(name: str, value: Any, level: int, batch_size: int, out_dim: int | None) -> Any:
    """`remove_batch_dim` for a result of any type: one whose `out_dim` is None is the same for all examples.

    Raises:
        ValueError: something else than a tensor has a batch dimension.
    """
    if isinstance(value, Tensor):
        if out_dim is not None:
            return remove_batch_dim(value, level, batch_size, out_dim)
        return _stand_in(_Mark(value, None, level, True), lambda: value.view_as(value))
    if out_dim is None:
        return value
    raise ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set out_dims= "
        "to None for output?"
    )


@contextmanager
def _given(known: dict[Any, Tensor]) -> Iterator[None]:
    before, _giving.known = _giving.known, known
    try:
        yield
    finally:
        _giving.known = before


def _without_marks(call: Callable[[], Any], marks: list[_Mark], values: Any) -> Any:
    """What a part returns, with values in the place of the marks that it returned before."""
    known = {_key(mark): value for mark, value in zip(marks, values, strict=True)}
    level, result = (marks[0].level, marks[0].result) if marks else (0, False)
    with _given(known):
        tree = call()
    leaves, spec = tree_flatten(tree)
    if not any(_mark_of(value, level, result) for value in leaves):
        return tree
    leaves = [known[_key(mark)] if (mark := _mark_of(value, level, result)) else value for value in leaves]
    return _lock_again(tree, tree_unflatten(leaves, spec))


def _lock_again(old: Any, new: Any) -> Any:
    """`new`, in which containers are locked where those of the old tree are locked against writes."""
    pairs = (tree_leaves(tree, is_leaf=lambda x: callable(getattr(x, "lock_", None))) for tree in (old, new))
    for before, after in zip(*pairs, strict=True):
        if getattr(before, "is_locked", False) is True and after is not before:
            after.lock_()
    return new


def run(
    parts: Any,
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    args: Any,
    kwargs: Any,
) -> Any:
    """Maps `func` with the parts of the module `parts`."""
    size, flat_dims, flat_args, args_spec = parts._process_batched_inputs(in_dims, args, func)
    level = len(_vmap.modes.all) + 1

    def marks_in(tree: Any, result: bool) -> list[_Mark]:
        marks = (_mark_of(value, level, result) for value in tree_leaves(tree))
        return [*{_key(mark): mark for mark in marks if mark}.values()]

    def inputs() -> Any:
        return parts._create_batched_inputs(flat_dims, flat_args, level, args_spec)

    def outputs() -> Any:
        return parts._unwrap_batched(output, out_dims, level, size, func)

    given, results, output = marks_in(inputs(), False), [], None

    def one_example(examples: Any) -> list[Tensor]:
        nonlocal output, results
        output = func(*_without_marks(inputs, given, examples), **kwargs)
        results = marks_in(outputs(), True)
        return [mark.tensor for mark in results]

    runs = []
    sizes = [n for _, n in _pieces(size, chunk_size)]
    states = _C._rng_states() if randomness == "same" and len(sizes) > 1 else None
    for start, n in _pieces(size, chunk_size):
        if states is not None:
            _C._set_rng_states(*states)
        part = [m.tensor if n == size else m.tensor.narrow(m.dim, start, n) for m in given]
        _vmap.modes.all.append(randomness)
        try:
            runs.append(_C._vmap(one_example, part, [mark.dim for mark in given], n, randomness))
        finally:
            _vmap.modes.all.pop()
    name = _vmap._name(func)
    values = [_joined(name, made, sizes, mark.dim) for mark, made in zip(results, zip(*runs, strict=True), strict=True)]
    return _without_marks(outputs, results, values)


def _pieces(size: int, chunk_size: int | None) -> list[tuple[int, int]]:
    """(first example, number of examples) of each call."""
    step = chunk_size or size or 1
    return [(start, min(step, size - start)) for start in range(0, max(size, 1), step)]


def _joined(name: str, made: Any, sizes: list[int], dim: int | None) -> Tensor:
    """One result from those of all calls."""
    placed = [_vmap._placed(name, value, batched, n, dim) for (value, batched), n in zip(made, sizes, strict=True)]
    return placed[0] if dim is None or len(placed) == 1 else cat(placed, dim)
