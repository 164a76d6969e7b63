"""`DataLoader`: a data set and a sampler make an iterable over batches."""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.context
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ..._base import Generator
from ..._own import at_home
from . import _collate, _pipes
from ._collate import default_collate as default_collate
from ._collate import default_convert as default_convert
from ._iterators import _BaseDataLoaderIter as _BaseDataLoaderIter
from ._iterators import (
    _DatasetKind,
    _draw_seed,
    _init_fn,
    _make_fetch,
    _MultiProcessingDataLoaderIter,
    _requests,
    _SingleProcessDataLoaderIter,
    _ThreadedDataLoaderIter,
)
from ._iterators import _sharding_worker_init_fn as _sharding_worker_init_fn
from ._threads import ThreadPool
from ._worker import get_worker_info as get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader"]

at_home(__name__, _BaseDataLoaderIter, _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter)

T_co = TypeVar("T_co", covariant=True)
# Names that libraries annotate with and compare with.
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]

# As `multiprocessing_context`: workers are threads of this process.
THREAD = "thread"


class _InfiniteConstantSampler:
    """The sampler of an iterable data set, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches.

    Args:
        dataset (Dataset): map-style or iterable.
        batch_size (int, optional): None disables batching.
        shuffle (bool): a new random order in every pass. Of a stream of pipes it sets whether those of them shuffle that do.
        sampler, batch_sampler (iterable): the order of indices, or of lists of indices, instead.
        num_workers (int): processes that load ahead; 0 loads in the calling thread. Tensors arrive in shared memory.
        collate_fn (callable): from a list of samples to a batch, by default `default_collate`.
        drop_last (bool): drop a last batch that is shorter.
        timeout (float): seconds to wait for a worker; 0 means forever.
        worker_init_fn (callable): called in each worker with its number.
        generator (Generator): source of the shuffling and of the workers' seeds.
        prefetch_factor (int): batches that each worker loads ahead, 2 by default.
        persistent_workers (bool): keep the workers between passes.
        multiprocessing_context (str or context): how processes start: "fork", "spawn", "forkserver" or a context of
            `multiprocessing`; by default its default. "thread" is rustgrad's own: workers are threads, which need no
            pickling and see the objects of the program.
        in_order (bool): batches in the order of the sampler; otherwise as they are ready.
        pin_memory, pin_memory_device: accepted, without effect: no device reads pinned memory.

    Raises:
        ValueError: options that exclude each other, or out of range.
        RuntimeError (while iterating): a worker was killed, or `timeout` has passed. Exceptions of a worker are raised
            with their class, and with the worker's traceback in the message.
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if _pipes.is_pipe(dataset):
            dataset = _pipes.prepare(dataset, shuffle)
            shuffle = None if isinstance(dataset, IterableDataset) else shuffle
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor: int | None = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self._context = self._checked_context(multiprocessing_context, num_workers)
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._pool = None
        # The length of an iterable data set, once it was asked for: iterators warn when they exceed it.
        self._IterableDataset_len_called: int | None = None
        if self._iterable:
            self._check_iterable(shuffle, sampler, batch_sampler)
            sampler = _InfiniteConstantSampler()
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = _collate.default_convert if batch_sampler is None else _collate.default_collate
        self.collate_fn = collate_fn
        self.__initialized = True

    @staticmethod
    def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cores is not None and num_workers > cores:
            warnings.warn(
                f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker in "
                f"current system is {cores}, which is smaller than what this DataLoader is going to create. Please be aware "
                "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number "
                "to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")

    @staticmethod
    def _checked_context(context, num_workers):
        """A start method or context that exists; None for the default one."""
        if context is None or (context == THREAD and num_workers):
            return context
        if not num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                f"num_workers={num_workers}"
            )
        methods = multiprocessing.get_all_start_methods()
        if isinstance(context, str):
            if context not in methods:
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{[*methods, THREAD]!r}, but got multiprocessing_context={context!r}"
                )
            return multiprocessing.get_context(context)
        if not isinstance(context, multiprocessing.context.BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying the start method, "
                f"but got multiprocessing_context={context}"
            )
        return context

    @property
    def _iterable(self):
        return isinstance(self.dataset, IterableDataset)

    @property
    def _dataset_kind(self):
        return _DatasetKind.Iterable if self._iterable else _DatasetKind.Map

    @_dataset_kind.setter
    def _dataset_kind(self, kind):
        if kind != self._dataset_kind:
            raise ValueError(f"_dataset_kind: expected {self._dataset_kind}, that of the data set, got {kind}")

    def check_worker_number_rationality(self) -> None:
        """Nothing to do: the constructor warns of more workers than processors."""

    @property
    def multiprocessing_context(self) -> Any:
        """How the workers start: a context of `multiprocessing`, "thread", or None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self._context = self._checked_context(context, self.num_workers)

    @staticmethod
    def _check_iterable(shuffle, sampler, batch_sampler):
        if shuffle not in (False, None):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
            )
        if sampler is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
            )
        if batch_sampler is not None:
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified batch_sampler option, "
                f"but got batch_sampler={batch_sampler}"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            if "_DataLoader__initialized" in self.__dict__:
                raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _ThreadedDataLoaderIter(self) if self._context == THREAD else _MultiProcessingDataLoaderIter(self)

    # PyTorch's names, which subclasses of the loader use.
    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def _iterator(self):
        """Of persistent workers: an iterator by which they are seen and ended; None without them."""
        if "_pool" not in self.__dict__:
            # A loader of a library, which makes its iterators itself.
            return self.__dict__.get("_own_iterator")
        if self._pool is None or self._context == THREAD:
            return None
        kept = object.__new__(_MultiProcessingDataLoaderIter)
        kept._loader, kept._pool, kept._processes = self, None, list(self._pool.processes)
        return kept

    @_iterator.setter
    def _iterator(self, iterator):
        if "_pool" not in self.__dict__:
            self.__dict__["_own_iterator"] = iterator
        elif iterator is None and (kept := self._iterator) is not None:
            kept._shutdown_workers()

    def _iterate_threads(self):
        pool = self._pool
        # An iterable data set needs fresh streams, so its workers cannot be kept.
        keep = self.persistent_workers and not self._iterable
        if pool is None:
            seed = _draw_seed(self)
            pool = ThreadPool(
                self.dataset,
                _make_fetch(self),
                self.num_workers,
                _init_fn(self),
                seed,
                self._iterable,
                max(1, self.prefetch_factor),
            )
            if keep:
                self._pool = pool
        finished = False
        try:
            yield from pool.run(_requests(self), self.timeout)
            finished = True
        finally:
            if not keep or not finished:
                # Results of an abandoned pass would appear in the next one.
                self._pool = None
                pool.shutdown()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}

    def __len__(self) -> int:
        """The number of batches (of samples without batching); TypeError if the data set has no length."""
        if not self._iterable:
            return len(self._index_sampler)
        samples = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return samples
        whole, rest = divmod(samples, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
