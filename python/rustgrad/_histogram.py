"""`histogramdd`, composed of two ops of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._base import ops
from ._C import Tensor
from .overrides import overridable
from .return_types import _make

__all__ = ["histogramdd"]

_Result = _make("histogramdd", ("hist", "bin_edges"))


@overridable
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The number of points in each bin of an N-dimensional grid.

    Args:
        input (Tensor): points [.., N].
        bins (int, ints or Tensors): the number of equal intervals of each dimension, or its edges.
        range (floats, optional): the smallest and the largest edge of each dimension. Default: from the points.
        weight (Tensor, optional): the weight of each point, [..].
        density (bool): divide by the sum and by the volume of each bin.

    Returns:
        A named tuple of `hist`, with one dimension for each of the points', and `bin_edges`, N tensors.

    Raises:
        RuntimeError: the sizes of `bins`, `range` or `weight` do not fit, or the elements are not finite.
    """
    if isinstance(bins, int):
        bins = [bins] * input.size(-1)
    elif len(bins) != input.size(-1) and all(isinstance(b, int) for b in bins):
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if all(isinstance(b, int) for b in bins):
        bins = ops["_histogramdd_bin_edges"](input, bins, range=range)
    hist = ops["_histogramdd_from_bin_tensors"](input, list(bins), weight=weight, density=density)
    return _Result((hist, tuple(bins)))
