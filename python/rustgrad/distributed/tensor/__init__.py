"""`rustgrad.distributed.tensor`: names that libraries look for; no tensor is split over processes here."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._absent import getattr_of
from ..._base import Tensor
from ..device_mesh import DeviceMesh, init_device_mesh
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "init_device_mesh",
]


class DTensor(Tensor):
    """The class of tensors that are split over processes, of which there are none here: it refuses to be called."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("DTensor: tensors are not split over processes here; expected a plain tensor.")


def distribute_tensor(tensor: Tensor, device_mesh: Any = None, placements: Any = None, **kwargs: Any) -> NoReturn:
    """NotImplementedError: tensors are not split over processes."""
    raise NotImplementedError("distribute_tensor: tensors are not split over processes here. Use collectives.")


def distribute_module(module: Any, device_mesh: Any = None, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: parameters are not split over processes."""
    raise NotImplementedError(
        "distribute_module: parameters are not split over processes here. Use DistributedDataParallel."
    )


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
