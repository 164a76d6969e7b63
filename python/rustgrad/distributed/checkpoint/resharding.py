"""Common parts of pieces of tensors."""

from __future__ import annotations

from .metadata import ChunkStorageMetadata

__all__: list[str] = []


def _check_shard_metadata_pair_overlap(shard1: ChunkStorageMetadata, shard2: ChunkStorageMetadata) -> bool:
    """Whether two pieces have elements in common."""
    return all(
        a < b + n and b < a + m
        for a, m, b, n in zip(shard1.offsets, shard1.sizes, shard2.offsets, shard2.sizes, strict=True)
    )


def _shards_get_overlap_region_wrt_saved_tensor(
    saved_shard: ChunkStorageMetadata, current_shard: ChunkStorageMetadata
) -> list[tuple[int, int, int, int]]:
    """For each dimension (dimension, where the common part begins in the saved piece, in the wanted one, its length, 0 of none)."""
    found = []
    places = zip(saved_shard.offsets, saved_shard.sizes, current_shard.offsets, current_shard.sizes, strict=True)
    for dim, (saved, size, wanted, count) in enumerate(places):
        start, end = max(saved, wanted), min(saved + size, wanted + count)
        found.append((dim, start - saved, start - wanted, max(end - start, 0)))
    return found
