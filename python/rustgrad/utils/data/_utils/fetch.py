"""The objects that get a batch of a data set by its indices, as PyTorch's loaders have them: `fetcher.fetch(indices)`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .._iterators import _MapFetcher

__all__: list[str] = []


class _BaseDatasetFetcher:
    """What both have: the data set, whether batches are made, and how."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = (
            dataset,
            auto_collation,
            collate_fn,
            drop_last,
        )

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch of indices, or the sample of an index."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Of a data set with indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch of indices, or the sample of an index."""
        return _MapFetcher(self.auto_collation, self.collate_fn)(self.dataset)(possibly_batched_index)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Of an iterable data set."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The next batch, of as many samples as there are indices, or the next sample; StopIteration at the end."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = list(itertools.islice(self.dataset_iter, len(possibly_batched_index)))
        self.ended = len(samples) < len(possibly_batched_index)
        if not samples or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(samples)
