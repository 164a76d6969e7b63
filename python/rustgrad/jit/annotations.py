"""Types for annotations, among them those of `typing` that libraries take from here: a number that stands for a list of equal ones, `BroadcastingList2[int]`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from .._absent import getattr_of

__all__ = [f"BroadcastingList{n}" for n in range(1, 7)]


class _BroadcastingList:
    """An annotation that code run as Python never looks at."""

    def __getitem__(self, types: Any) -> None:
        return None


for _name in __all__:
    globals()[_name] = _BroadcastingList()


__getattr__ = getattr_of(__name__)
