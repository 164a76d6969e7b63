"""The names of PyTorch's first way to split parameters over processes: libraries ask whether a model is one, and nothing is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NoReturn

from ..._absent import getattr_of
from ..._base import dtype
from ...nn.modules.module import Module

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "ShardingStrategy",
    "StateDictType",
]


class BackwardPrefetch(enum.Enum):
    """When the parameters of the next module are gathered in backward."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class ShardingStrategy(enum.Enum):
    """What is split over the processes."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class StateDictType(enum.Enum):
    """What a state dict holds."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclass
class CPUOffload:
    """Whether parameters wait on the CPU."""

    offload_params: bool = False


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes in which a sharded module computes, reduces gradients and keeps buffers."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


class FullyShardedDataParallel(Module):
    """For `isinstance`; it refuses to be called."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "FullyShardedDataParallel: parameters are not split over processes here; expected one process. "
            "Hint: use the module itself."
        )


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
