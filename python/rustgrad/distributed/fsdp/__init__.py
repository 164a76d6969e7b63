"""`rustgrad.distributed.fsdp`: names that libraries look for; parameters are not split over processes here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ..._absent import getattr_of
from ..._base import dtype
from .api import CPUOffloadPolicy, OffloadPolicy
from .fully_sharded_data_parallel import (
    BackwardPrefetch,
    CPUOffload,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "ShardingStrategy",
    "StateDictType",
    "fully_shard",
    "register_fsdp_forward_method",
]


class FSDPModule:
    """The class of modules that `fully_shard` has changed, of which there are none here: it refuses to be called."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("FSDPModule: expected fully_shard to make it, which is not here.")


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which a sharded module computes, reduces gradients and returns."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Nothing: the module is none that `fully_shard` has changed."""


def fully_shard(module: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: parameters are not split over processes."""
    raise NotImplementedError(
        "fully_shard: parameters are not split over processes here. Hint: one process has the whole module."
    )


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
