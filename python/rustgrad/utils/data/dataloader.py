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
from . import _collate, _pipes
from ._collate import default_collate as default_collate
from ._collate import default_convert as default_convert
from ._threads import ThreadPool
from ._worker import get_worker_info as get_worker_info
from .dataset import Dataset, IterableDataset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, random_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._processes import ProcessPool

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)
# Names that libraries annotate with and compare with.
_collate_fn_t = Callable[[list[Any]], Any]


_worker_init_fn_t = Callable[[int], None]


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        """The object that gets the batches of a data set, for libraries with a loader of their own."""
        from ._utils import fetch

        cls = fetch._MapDatasetFetcher if kind == _DatasetKind.Map else fetch._IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


def _sharding_worker_init_fn(worker_init_fn: Any, world_size: int, rank_id: int, worker_id: int) -> None:
    """Divides the pipe of a worker among the workers of all processes, then calls `worker_init_fn`."""
    info = get_worker_info()
    assert info is not None
    _pipes.shard(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


# As `multiprocessing_context`: workers are threads of this process.
THREAD = "thread"


def _draw_seed(loader: Any) -> int:
    """The base of the workers' seeds. A pass without workers draws it too, and the generator continues alike;
    one with workers that are there already does not."""
    return random_seed(loader.generator)


def _make_fetch(loader: Any) -> _MapFetcher | _IterableFetcher:
    if loader._dataset_kind == _DatasetKind.Iterable:
        size = loader.batch_size if loader._auto_collation else None
        return _IterableFetcher(loader._auto_collation, loader.collate_fn, size, loader.drop_last)
    return _MapFetcher(loader._auto_collation, loader.collate_fn)


def _init_fn(loader):
    """What each worker calls first."""
    return _pipes.ShardingInit(loader.worker_init_fn) if _pipes.is_pipe(loader.dataset) else loader.worker_init_fn


def _requests(loader: Any) -> Iterator[Any]:
    """What the fetcher is called with: nothing for an iterable data set, which says itself when it ends."""
    if loader._dataset_kind == _DatasetKind.Iterable:
        return itertools.repeat(None)
    return iter(loader._index_sampler)


class _BaseDataLoaderIter:
    """An iterator over the batches of one pass, which knows how many there are.

    Of the loader it reads what is public and PyTorch's names: libraries give it loaders of their own. An iterator of theirs
    has PyTorch's names too: `_next_index`, `_reset`, `_base_seed`, and the loader's settings.
    """

    _own = False
    _OF_LOADER = {
        name if name[0] == "_" else f"_{name}": name
        for name in "_auto_collation _dataset_kind _index_sampler collate_fn drop_last num_workers persistent_workers "
        "pin_memory pin_memory_device prefetch_factor timeout".split()
    }
    _rank, _world_size = 0, 1

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        self._dataset = loader.dataset
        self._num_yielded = 0
        self._shared_seed = _pipes.draw_shared_seed(loader.dataset, loader.generator)
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if not self._own:
            self._sampler_iter = iter(loader._index_sampler)
            self._base_seed = _draw_seed(loader)

    def __getattr__(self, name: str) -> Any:
        if name not in _BaseDataLoaderIter._OF_LOADER:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self._loader, self._OF_LOADER[name])

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begins another pass."""
        self._sampler_iter = iter(loader._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if not first_iter:
            self._shared_seed = _pipes.draw_shared_seed(loader.dataset, loader.generator)

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        if self._IterableDataset_len_called is not None and self._num_yielded > self._IterableDataset_len_called:
            self._warn_of_length()
        return batch

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _warn_of_length(self):
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._IterableDataset_len_called}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._loader.num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self._loader)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches made in the calling thread."""

    _own = True

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        _draw_seed(loader)
        _pipes.shard(loader.dataset)
        self._fetch = _make_fetch(loader)(loader.dataset)
        self._requests = _requests(loader)

    def _next_data(self) -> Any:
        return self._fetch(next(self._requests))


class _ThreadedDataLoaderIter(_BaseDataLoaderIter):
    """Batches made in threads."""

    _own = True

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._batches = loader._iterate_threads()

    def _next_data(self) -> Any:
        return next(self._batches)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches made in processes, which end with the pass unless they are persistent."""

    _own = True

    def __init__(self, loader: DataLoader[Any]) -> None:
        from ._processes import ProcessPool

        super().__init__(loader)
        pool = getattr(loader, "_pool", None)
        if pool is None or not pool.processes:
            pool = ProcessPool(
                _draw_seed(loader),
                loader.dataset,
                _make_fetch(loader),
                loader.num_workers,
                _init_fn(loader),
                getattr(loader, "_context", None),
                max(1, loader.prefetch_factor or 1),
                loader.timeout,
                getattr(loader, "in_order", True),
            )
            if self._shared_seed is not None:
                # PyTorch draws one more for the first pass, which nobody uses; the generator continues alike.
                _draw_seed(loader)
        if loader.persistent_workers:
            loader._pool = pool
        self._pool: ProcessPool | None = pool
        self._processes = list(pool.processes)
        self._number = pool.number + 1
        pool.begin(_requests(loader), self._shared_seed)

    def _next_data(self) -> Any:
        pool = self._pool
        if pool is None or pool.number != self._number:
            raise StopIteration
        try:
            return pool.next()
        except StopIteration:
            self._close()
            raise

    # Programs read the processes' ids there, as in PyTorch; after the last batch too.
    @property
    def _workers(self):
        return self._processes

    def _close(self):
        pool, self._pool = self._pool, None
        if pool is not None and pool is not getattr(self._loader, "_pool", None):
            pool.shutdown()

    # The name in PyTorch; programs call it to end persistent workers.
    def _shutdown_workers(self):
        pool = self._pool or getattr(self._loader, "_pool", None)
        self._pool = self._loader._pool = None
        if pool is not None:
            pool.shutdown()

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self._close()


class _InfiniteConstantSampler:
    """The sampler of an iterable data set, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _MapFetcher:
    """Creates, for a data set, the function from indices to a batch."""

    def __init__(self, batched: bool, collate_fn: Callable[[Any], Any]) -> None:
        self.batched, self.collate_fn = batched, collate_fn

    def __call__(self, dataset: Any) -> Callable[[Any], Any]:
        collate_fn = self.collate_fn
        if not self.batched:
            return lambda index: collate_fn(dataset[index])
        if type(dataset) is TensorDataset and collate_fn is _collate.default_collate:
            # Indexing whole columns is equivalent to stacking their rows.
            return dataset.gather_batch
        many = getattr(dataset, "__getitems__", None)
        if callable(many):
            return lambda indices: collate_fn(many(indices))
        return lambda indices: collate_fn([dataset[i] for i in indices])


class _IterableFetcher:
    """Creates, for an iterable data set, the function that makes its next batch."""

    def __init__(
        self, batched: bool, collate_fn: Callable[[Any], Any], batch_size: int | None, drop_last: bool
    ) -> None:
        self.batched, self.collate_fn, self.batch_size, self.drop_last = batched, collate_fn, batch_size, drop_last

    def __call__(self, dataset: Any) -> Callable[[Any], Any]:
        stream = iter(dataset)

        def fetch(_):
            if not self.batched:
                return self.collate_fn(next(stream))
            samples = list(itertools.islice(stream, self.batch_size))
            if not samples or (self.drop_last and len(samples) < self.batch_size):
                raise StopIteration
            return self.collate_fn(samples)

        return fetch


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
