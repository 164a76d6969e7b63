"""From a list of samples to one batch: `default_collate`, and `default_convert` for loading without batching.

Which function makes a batch of which type stands in `default_collate_fn_map`, to which programs add types of their own.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ... import _C
from ..._base import Tensor, as_tensor, float64, stack, tensor
from ..._formats import strided
from ._worker import SHARED_FROM, sends

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
]


def _is_numpy(value):
    return type(value).__module__ == "numpy"


def _is_array(value):
    """Of the values of NumPy: whether it is an array, rather than a number."""
    return isinstance(value, sys.modules["numpy"].ndarray)


def _check_numpy(value):
    if value.dtype.kind in "SUOV":
        raise TypeError(
            f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {value.dtype}"
        )


def _rebuild(template, values, mutable):
    """`values` in a container of the template's type, or in a plain one where that type cannot be built."""
    with contextlib.suppress(TypeError):
        if isinstance(template, mutable):
            clone = copy.copy(template)
            if isinstance(template, MutableMapping):
                clone.update(values)
            else:
                for i, value in enumerate(values):
                    clone[i] = value
            return clone
        return type(template)(values)
    return values


def default_convert(data: Any) -> Any:
    """NumPy arrays become tensors, inside containers too; everything else stays as it is."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        return data if getattr(data, "dtype", None) is None or data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild(data, {k: default_convert(v) for k, v in data.items()}, MutableMapping)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild(data, [default_convert(d) for d in data], MutableSequence)
    return data


def _collate_sequence(batch, fn_map):
    first = batch[0]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(samples, collate_fn_map=fn_map) for samples in zip(*batch, strict=True)))
    if not all(len(sample) == len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(samples, collate_fn_map=fn_map) for samples in zip(*batch, strict=True)]
    return columns if isinstance(first, tuple) else _rebuild(first, columns, MutableSequence)


def _stacked(tensors):
    """`stack`; in a worker process the result of plain tensors is made in shared memory, from where it need not be copied."""
    first, count = tensors[0], len(tensors)
    nbytes = first.numel() * first.itemsize * count
    if not sends() or nbytes <= SHARED_FROM or type(first) is not Tensor or not first.is_cpu or first.requires_grad:
        return stack(tensors, 0)
    if any(t.shape != first.shape or t.dtype != first.dtype or t.requires_grad for t in tensors):
        return stack(tensors, 0)
    shape, strides = [count, *first.shape], [first.numel()]
    for n in first.shape:
        strides.append(strides[-1] // n)
    out = _C._over_storage(_C._shared_empty(nbytes), first.dtype, 0, shape, strides)
    return stack(tensors, 0, out=out)


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Tensors, stacked along a new first dimension. RuntimeError: they are sparse or nested."""
    if batch[0].layout is not strided or batch[0].is_nested:
        kind = "nested" if batch[0].is_nested else "sparse"
        raise RuntimeError(
            f"Batches of {kind} tensors are not currently supported by the default collate_fn; please provide a custom "
            "collate_fn to handle them appropriately."
        )
    return _stacked(list(batch))


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Arrays of NumPy as tensors, stacked; TypeError for texts and objects."""
    _check_numpy(batch[0])
    return _stacked([as_tensor(b) for b in batch])


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Numbers of NumPy as one tensor."""
    _check_numpy(batch[0])
    return as_tensor(list(batch))


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Floats as a tensor of float64."""
    return tensor(list(batch), dtype=float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Ints as a tensor."""
    return tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Sequence[Any]:
    """Texts as they are."""
    return batch


# Texts and floats come before NumPy's: some of its types are subclasses of them.
default_collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
    float: collate_float_fn,
    int: collate_int_fn,
}


def _function_for(first, fn_map):
    """What makes a batch of values like `first`: the entry of its type, else of the first type in the map that it has."""
    if exact := fn_map.get(type(first)):
        return exact
    if _is_numpy(first) and not isinstance(first, (str, bytes)):
        return collate_numpy_array_fn if _is_array(first) else collate_numpy_scalar_fn
    return next((fn for kind, fn in fn_map.items() if isinstance(first, kind)), None)


def collate(batch: Sequence[Any], *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """A batch of samples, made by the functions of a map from types; containers are taken apart.

    Args:
        batch (list): samples of one structure.
        collate_fn_map (dict, optional): from a type, or a tuple of types, to a function of the values and of the
            keyword `collate_fn_map`. An exact type goes before the first one of which the value is an instance.

    Raises:
        TypeError: a sample of a type that is neither in the map nor a container.
        RuntimeError: sequences of different lengths, or tensors of different shapes.
    """
    first = batch[0]
    if collate_fn_map is not None and (fn := _function_for(first, collate_fn_map)):
        return fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return _rebuild(first, columns, MutableMapping)
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        return _collate_sequence(batch, collate_fn_map)
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks samples: tensors and arrays along a new first dimension, numbers into a tensor, containers by part.

    Strings stay as they are. Floats become float64, ints int64. `default_collate_fn_map` says how to make a batch of other types.

    Raises:
        TypeError: a sample of another type.
        RuntimeError: sequences of different lengths, or tensors of different shapes.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
