"""Hooks that average a bucket of gradients: as it is, or in half precision, which sends half the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._base import bfloat16, float16
from ...._C import Tensor
from ....autograd.grad_mode import no_grad
from ....futures import Future
from ...collectives import all_reduce
from ...group import _checked
from ...reducer import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

_Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _average(process_group: Any, flat: Tensor) -> Future[Tensor]:
    group = _checked(process_group)
    work: Any = all_reduce(flat.div_(group.size()), group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The average of the gradients over the processes: what is done without a hook."""
    return _average(process_group, bucket.buffer())


def _compressed(hook_result, bucket):
    def restore(future):
        with no_grad():
            bucket.buffer().copy_(future.value())
        return bucket.buffer()

    return hook_result.then(restore)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The average of the gradients, which cross as float16."""
    return _compressed(_average(process_group, bucket.buffer().to(float16)), bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The average of the gradients, which cross as bfloat16."""
    return _compressed(_average(process_group, bucket.buffer().to(bfloat16)), bucket)


class _Half(GradBucket):
    """A bucket whose buffer has another element type."""

    def __init__(self, bucket: GradBucket, dtype: Any) -> None:
        self.__dict__.update(vars(bucket))
        self._buffer = bucket.buffer().to(dtype)


def fp16_compress_wrapper(hook: _Hook) -> _Hook:
    """A hook that is given the gradients as float16."""
    return lambda state, bucket: _compressed(hook(state, _Half(bucket, float16)), bucket)


def bf16_compress_wrapper(hook: _Hook) -> _Hook:
    """A hook that is given the gradients as bfloat16."""
    return lambda state, bucket: _compressed(hook(state, _Half(bucket, bfloat16)), bucket)
