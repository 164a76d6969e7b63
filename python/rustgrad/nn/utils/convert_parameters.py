"""All parameters as one flat vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._absent import getattr_of
from ..._base import Tensor, cat, typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_one_device(parameters):
    if len({p.device for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other, as a 1-d tensor."""
    parameters = list(parameters)
    _check_one_device(parameters)
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes consecutive slices of the 1-d tensor `vec` the data of the parameters."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    parameters = list(parameters)
    _check_one_device(parameters)
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()


__getattr__ = getattr_of(__name__)
