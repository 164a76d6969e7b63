"""The options of PyTorch's ways to split parameters over processes: only kept, as nothing is split here."""

from __future__ import annotations

from dataclasses import dataclass, field

from .fully_sharded_data_parallel import BackwardPrefetch, CPUOffload, MixedPrecision, ShardingStrategy, StateDictType

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


@dataclass
class StateDictConfig:
    """How a state dict is made."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How a state dict of whole parameters is made."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """How a state dict of this process is made."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How a state dict of split parameters is made."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How the state dict of an optimizer is made."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """How the state dict of an optimizer of whole parameters is made."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """How the state dict of an optimizer of this process is made."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """How the state dict of an optimizer of split parameters is made."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What a state dict holds, and how it is made."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)


@dataclass(frozen=True)
class OffloadPolicy:
    """Where the parts of parameters wait: on their device."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Where the parts of parameters wait: on the CPU."""

    pin_memory: bool = True


def __dir__() -> list[str]:
    return __all__
