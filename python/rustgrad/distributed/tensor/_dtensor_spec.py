"""How a tensor that is split over processes lies, of which there are none here: names that libraries import."""

from __future__ import annotations

from typing import NamedTuple

from ..._base import dtype
from ..._C import Size
from .._refusals import refusing_class

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """The form of a whole tensor."""

    shape: Size
    stride: tuple[int, ...]
    dtype: dtype


DTensorSpec = refusing_class(__name__, "DTensorSpec", "tensors are not split over processes here.")
