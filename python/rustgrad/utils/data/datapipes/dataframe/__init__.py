"""`rustgrad.utils.data.datapipes.dataframe`: pipes of data frames, and the recording of what is done to them."""

from ..datapipe import DFIterDataPipe
from .dataframes import CaptureDataFrame
from .datapipes import DataFramesAsTuplesPipe

__all__ = ["CaptureDataFrame", "DFIterDataPipe", "DataFramesAsTuplesPipe"]


def __dir__() -> list[str]:
    return __all__
