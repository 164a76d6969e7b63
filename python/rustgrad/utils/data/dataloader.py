"""`DataLoader`: a data set and a sampler make an iterable over batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ..._base import Generator
from . import _collate
from ._collate import default_collate as default_collate
from ._collate import default_convert as default_convert
from ._worker import WorkerPool
from .dataset import Dataset, IterableDataset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, random_seed

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)


class _Endless:
    """The sampler of an iterable data set, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _map_fetcher(batched, collate_fn):
    """Creates, for a data set, the function from indices to a batch."""

    def make(dataset):
        if not batched:
            return lambda index: collate_fn(dataset[index])
        if type(dataset) is TensorDataset and collate_fn is _collate.default_collate:
            # Indexing whole columns is equivalent to stacking their rows.
            return dataset.gather_batch
        many = getattr(dataset, "__getitems__", None)
        if callable(many):
            return lambda indices: collate_fn(many(indices))
        return lambda indices: collate_fn([dataset[i] for i in indices])

    return make


def _iterable_fetcher(batched, collate_fn, batch_size, drop_last):
    def make(dataset):
        stream = iter(dataset)

        def fetch(_):
            if not batched:
                return collate_fn(next(stream))
            samples = list(itertools.islice(stream, batch_size))
            if not samples or (drop_last and len(samples) < batch_size):
                raise StopIteration
            return collate_fn(samples)

        return fetch

    return make


class _Pass:
    """The batches of one pass over a loader: an iterator that knows how many there are."""

    def __init__(self, loader: Any, batches: Any) -> None:
        self._loader, self._batches = loader, batches

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader)


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches.

    Args:
        dataset (Dataset): map-style or iterable.
        batch_size (int, optional): None disables batching.
        shuffle (bool): a new random order in every pass.
        sampler, batch_sampler (iterable): the order of indices, or of lists of indices, instead.
        num_workers (int): threads that load ahead; 0 loads in the calling thread.
        collate_fn (callable): from a list of samples to a batch, by default `default_collate`.
        drop_last (bool): drop a last batch that is shorter.
        timeout (float): seconds to wait for a worker; 0 means forever.
        worker_init_fn (callable): called in each worker with its number.
        generator (Generator): source of the shuffling and of the workers' seeds.
        prefetch_factor (int): batches that each worker loads ahead, 2 by default.
        persistent_workers (bool): keep the workers between passes.
        pin_memory, pin_memory_device, multiprocessing_context, in_order: accepted, without effect.

    Raises:
        ValueError: options that exclude each other, or out of range.
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
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor: int | None = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._iterable = isinstance(dataset, IterableDataset)
        self._pool = None
        if self._iterable:
            self._check_iterable(shuffle, sampler, batch_sampler)
            sampler = _Endless()
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
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")

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
            if "collate_fn" in self.__dict__:
                raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def _make_fetch(self):
        batched = self.batch_sampler is not None
        if self._iterable:
            return _iterable_fetcher(batched, self.collate_fn, self.batch_size, self.drop_last)
        return _map_fetcher(batched, self.collate_fn)

    def _requests(self):
        if self._iterable:
            return itertools.repeat(None)
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return _Pass(self, self._iterate_here() if self.num_workers == 0 else self._iterate_workers())

    def _iterate_here(self):
        fetch = self._make_fetch()(self.dataset)
        for request in self._requests():
            try:
                batch = fetch(request)
            except StopIteration:
                return
            yield batch

    def _iterate_workers(self):
        pool = self._pool
        # An iterable data set needs fresh streams, so its workers cannot be kept.
        keep = self.persistent_workers and not self._iterable
        if pool is None:
            seed = self.generator.initial_seed() if self.generator is not None else random_seed()
            pool = WorkerPool(
                self.dataset,
                self._make_fetch(),
                self.num_workers,
                self.worker_init_fn,
                seed,
                self._iterable,
                max(1, self.prefetch_factor),
            )
            if keep:
                self._pool = pool
        finished = False
        try:
            yield from pool.run(self._requests(), self.timeout)
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
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        whole, rest = divmod(samples, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
