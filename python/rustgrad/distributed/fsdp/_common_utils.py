"""What libraries ask of modules that are split over processes, of which there are none here."""

from __future__ import annotations

import enum

from ..._absent import getattr_of

__all__ = ["HandleTrainingState", "TrainingState", "clean_tensor_name"]

# What wrappers put into the names of what they hold.
_WRAPPED = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module")


class TrainingState(enum.Enum):
    """What a wrapper is doing."""

    IDLE = enum.auto()
    FORWARD_BACKWARD = enum.auto()
    SUMMON_FULL_PARAMS = enum.auto()


class HandleTrainingState(enum.Enum):
    """What is being done with a group of parameters."""

    IDLE = enum.auto()
    FORWARD = enum.auto()
    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()
    SUMMON_FULL_PARAMS = enum.auto()


def clean_tensor_name(tensor_name: str) -> str:
    """The name of a parameter or buffer without the names of wrappers."""
    return ".".join(part for part in tensor_name.split(".") if part not in _WRAPPED)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
