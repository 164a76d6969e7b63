"""From a list of samples to one batch: `default_collate`, and `default_convert` for loading without batching."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

from ... import _C
from ..._base import Tensor, as_tensor, float64, stack, tensor
from ._worker import SHARED_FROM, sends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["default_collate", "default_convert"]


def _is_numpy(value):
    return type(value).__module__ == "numpy"


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


def _collate_numpy(batch):
    _check_numpy(batch[0])
    if batch[0].shape == ():
        return as_tensor(batch)
    return _stacked([as_tensor(b) for b in batch])


def _collate_sequence(batch):
    first = batch[0]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch, strict=True)))
    if not all(len(sample) == len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [default_collate(samples) for samples in zip(*batch, strict=True)]
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


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks samples: tensors and arrays along a new first dimension, numbers into a tensor, containers by part.

    Strings stay as they are. Floats become float64, ints int64.

    Raises:
        TypeError: a sample of another type.
        RuntimeError: sequences of different lengths, or tensors of different shapes.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(list(batch))
    # NumPy's strings are strings too.
    if isinstance(first, (str, bytes)):
        return batch
    if _is_numpy(first):
        return _collate_numpy(list(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, Mapping):
        columns = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _rebuild(first, columns, MutableMapping)
    if isinstance(first, Sequence):
        return _collate_sequence(batch)
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )
