"""How a tensor would lie in the processes of a mesh: split along a dimension, whole in each, or as parts of a sum."""

from __future__ import annotations

from dataclasses import dataclass

from ..._absent import getattr_of

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it splits the tensor, along `dim` where that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes have parts that are to be combined, by `reduce_op` where that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Split along dimension `dim`, as `chunk` splits."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How many of `curr_local_size` rows process `rank` of `num_chunks` has, and where they begin."""
        each = -(-curr_local_size // num_chunks)
        start = min(rank * each, curr_local_size)
        return min(each, curr_local_size - start), start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Split along `dim` by a mesh dimension whose parts another one, to its right, has split `split_factor` ways before."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """The whole in each process."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Parts that `reduce_op` combines."""

    reduce_op: str = "sum"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
