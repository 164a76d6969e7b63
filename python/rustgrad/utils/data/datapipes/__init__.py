"""`rustgrad.utils.data.datapipes`: data sets made of data sets, which a graph of small steps (map, batch, shuffle ..) describes.

`iter` holds the steps over streams, `map` those over maps from indices, `dataframe` those over data frames. Their classes
register themselves as methods of all pipes, so they are imported together, on the first use of any of them.
"""

from . import dataframe, iter, map

__all__ = ["dataframe", "iter", "map"]


def __dir__() -> list[str]:
    return __all__
