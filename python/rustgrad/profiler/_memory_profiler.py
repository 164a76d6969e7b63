"""What memory is used for, by kind, in timelines that are not recorded here."""

from __future__ import annotations

import enum

from .._absent import getattr_of
from ..distributed._refusals import refusing_class

__all__ = ["Category", "MemoryProfileTimeline"]


class Category(enum.Enum):
    """What a piece of memory is."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


# How pictures show the categories; None is memory of which nothing is known.
_CATEGORY_TO_COLORS = {
    Category.PARAMETER: "darkgreen",
    Category.OPTIMIZER_STATE: "goldenrod",
    Category.INPUT: "black",
    Category.TEMPORARY: "mediumpurple",
    Category.ACTIVATION: "red",
    Category.GRADIENT: "mediumblue",
    Category.AUTOGRAD_DETAIL: "royalblue",
    None: "grey",
}
_CATEGORY_TO_INDEX = {category: i for i, category in enumerate(_CATEGORY_TO_COLORS)}

MemoryProfileTimeline = refusing_class(
    __name__, "MemoryProfileTimeline", "profiles hold no timeline of memory; live_counts() counts what is alive."
)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
