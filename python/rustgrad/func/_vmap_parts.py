"""`vmap` in the parts that PyTorch's has, for libraries that replace them to map over containers of their own.

Such a library (tensordict) assigns its functions to `_functorch.vmap._process_batched_inputs`, `_create_batched_inputs` and
`_unwrap_batched`, and these call `_add_batch_dim` and `_remove_batch_dim` for the tensors in a container. There they hide and
show a dimension. Here, where a function sees one example, they make a *mark*: a tensor of the shape that the caller
expects, which names the tensor and the dimension that are meant. Marks in the tree of arguments become examples, marks in the tree of
results become batches. A mark may be kept by its container and come back in a later call.
"""

from __future__ import annotations

from collections.abc import Callable
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


_KEY = "_vmap_mark"


def _mark_of(value: Any, level: int, result: bool) -> _Mark | None:
    mark = getattr(value, _KEY, None) if isinstance(value, Tensor) else None
    return mark if mark is not None and (mark.level, mark.result) == (level, result) else None


def _marked(like: Tensor, *mark: Any) -> Tensor:
    setattr(like, _KEY, _Mark(*mark))
    return like


def is_marked(value: Tensor) -> bool:
    """Whether a tensor stands for the examples of a batched argument."""
    mark = getattr(value, _KEY, None)
    return mark is not None and not mark.result


def add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """The mark of a tensor whose dimension `in_dim` is the batch, of the shape of one example."""
    with _C.DisableTorchFunctionSubclass():
        dim = in_dim % max(tensor.dim(), 1)
        if tensor.size(dim):
            return _marked(tensor.select(dim, 0), tensor, dim, level, False)
        return _marked(tensor.new_ones([*tensor.shape[:dim], *tensor.shape[dim + 1 :]]), tensor, dim, level, False)


def remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """The mark of a result, of the shape that it has with the batch at `out_dim`."""
    with _C.DisableTorchFunctionSubclass():
        n = tensor.dim() + 1
        if not -n <= out_dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {out_dim})")
        dim = out_dim % n
        shape = [*tensor.shape[:dim], batch_size, *tensor.shape[dim:]]
        return _marked(tensor.unsqueeze(dim).expand(shape), tensor, dim, level, True)


def maybe_remove_batch_dim(name: str, value: Any, level: int, batch_size: int, out_dim: int | None) -> Any:
    """`remove_batch_dim` for a result of any type: one whose `out_dim` is None is the same for all examples.

    Raises:
        ValueError: something else than a tensor has a batch dimension.
    """
    if out_dim is None:
        if not isinstance(value, Tensor):
            return value
        with _C.DisableTorchFunctionSubclass():
            return _marked(value.view_as(value), value, None, level, True)
    if not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set out_dims= "
            "to None for output?"
        )
    return remove_batch_dim(value, level, batch_size, out_dim)


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
    arguments = parts._create_batched_inputs(flat_dims, flat_args, level, args_spec)
    given, spec = tree_flatten(arguments)
    marks = {id(value): mark for value in given if (mark := _mark_of(value, level, False))}
    results: list[Any] = []
    tree: Any = None

    def one_example(examples: Any) -> list[Tensor]:
        nonlocal results, tree
        by_mark = dict(zip(marks, examples, strict=True))
        inputs = tree_unflatten([by_mark.get(id(value), value) for value in given], spec)
        _lock_again(arguments, inputs)
        results, tree = tree_flatten(parts._unwrap_batched(func(*inputs, **kwargs), out_dims, level, size, func))
        return [mark.tensor for value in results if (mark := _mark_of(value, level, True))]

    runs = []
    for part, n in _pieces([*marks.values()], size, chunk_size, randomness):
        _vmap.modes.all.append(randomness)
        try:
            runs.append(_C._vmap(one_example, part, [mark.dim for mark in marks.values()], n, randomness))
        finally:
            _vmap.modes.all.pop()
    made = zip(*runs, strict=True)
    name = _vmap._name(func)
    for i, value in enumerate(results):
        if mark := _mark_of(value, level, True):
            results[i] = _joined(name, next(made), [n for _, n in _pieces([], size, chunk_size, "")], mark.dim)
    return tree_unflatten(results, tree)


def _lock_again(old: Any, new: Any) -> None:
    """Locks the containers of a tree that was built anew where those of the old one are locked against writes."""
    pairs = (tree_leaves(tree, is_leaf=lambda x: callable(getattr(x, "lock_", None))) for tree in (old, new))
    for before, after in zip(*pairs, strict=True):
        if getattr(before, "is_locked", False) is True and after is not before:
            after.lock_()


def _pieces(marks: Any, size: int, chunk_size: int | None, randomness: str) -> Any:
    """(tensors, number of examples) for each call; randomness "same" starts each from one state."""
    step = chunk_size or size or 1
    states = _C._rng_states() if randomness == "same" and step < size else None
    for start in range(0, max(size, 1), step):
        if states is not None:
            _C._set_rng_states(*states)
        n = min(step, size - start)
        yield [mark.tensor if n == size else mark.tensor.narrow(mark.dim, start, n) for mark in marks], n


def _joined(name: str, pieces: Any, sizes: list[int], dim: int | None) -> Tensor:
    placed = [_vmap._placed(name, value, batched, n, dim) for (value, batched), n in zip(pieces, sizes, strict=True)]
    return placed[0] if dim is None or len(placed) == 1 else cat(placed, dim)
