"""`rustgrad.utils.data.datapipes`: the base classes of pipes, which programs derive from or ask for; there are no pipes."""

from ...._absent import getattr_of
from ..dataset import Dataset, IterableDataset

__all__ = ["IterDataPipe", "MapDataPipe"]


class IterDataPipe(IterableDataset):  # type: ignore[type-arg]
    """An `IterableDataset` by the name that pipes have."""


class MapDataPipe(Dataset):  # type: ignore[type-arg]
    """A `Dataset` by the name that pipes have."""


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
