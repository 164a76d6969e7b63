"""The iterators of a `DataLoader`: what makes its batches, in the calling thread, in threads or in processes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..._base import profiled
from . import _collate, _pipes
from ._worker import get_worker_info
from .dataset import TensorDataset
from .sampler import random_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._processes import ProcessPool
    from .dataloader import DataLoader

__all__: list[str] = []


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
        batch = profiled(f"enumerate(DataLoader)#{type(self).__name__}.__next__", self._next_data)
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


class _MapFetcher:
    """Creates, for a data set, the function from indices to a batch."""

    of_stream = False  # so that StopIteration is an error of the data set

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

    of_stream = True

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
