"""`rustgrad.utils.data`: data sets, samplers, and `DataLoader`. Pipes (`datapipes`, `graph`) load on first use."""

from ..._absent import getattr_of
from ._collate import default_collate, default_convert
from ._worker import get_worker_info
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import datapipes as datapipes
    from . import graph as graph
    from . import graph_settings as graph_settings
    from .datapipes._decorator import (
        argument_validation,
        functional_datapipe,
        guaranteed_datapipes_determinism,
        non_deterministic,
        runtime_validation,
        runtime_validation_disabled,
    )
    from .datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "argument_validation",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
