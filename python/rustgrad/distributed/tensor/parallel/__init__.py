"""`torch.distributed.tensor.parallel`: plans for splitting layers over processes can be written; no layer is split here."""

from __future__ import annotations

from typing import Any

from ...._absent import getattr_of
from ....nn.modules.module import Module
from ..._refusals import refusing_function
from .style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]


def parallelize_module(
    module: Module,
    device_mesh: Any = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """The module as it is, where the mesh has one process: a part of one is the whole.

    Args:
        device_mesh (DeviceMesh): one dimension of the processes.
        parallelize_plan (ParallelStyle or dict): how the module is split, or its submodules by name.

    Raises:
        NotImplementedError: the mesh has several processes, or none is given.
    """
    if device_mesh is None or device_mesh.size() > 1:
        raise NotImplementedError(
            "parallelize_module: layers are not split over processes here; expected a mesh of one process. Hint: use "
            "DistributedDataParallel."
        )
    return module


loss_parallel = refusing_function(__name__, "loss_parallel", "compute the loss of whole logits.")

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
