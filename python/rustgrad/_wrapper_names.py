"""Names that libraries of wrapper subclasses look up: what they ask of tensors, and kernels and layouts that are not here."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

from ._base import Tensor
from .overrides import overridable

__all__: list[str] = []


@overridable
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input.data = from_` gives a tensor the parts of another: both have memory, or both wrap others."""
    return ("_wrapped_device" in input.__dict__) == ("_wrapped_device" in from_.__dict__)


ScalingType = enum.Enum(
    "ScalingType",
    "TensorWise RowWise BlockWise1x16 BlockWise1x32 BlockWise1x128 BlockWise128x128",
    module=__name__,
    start=0,
)
ScalingType.__doc__ = """How products with scales take them. Only names: there are no such products."""


SwizzleType = enum.Enum("SwizzleType", "NO_SWIZZLE SWIZZLE_32_4_4", module=__name__, start=0)
SwizzleType.__doc__ = """How scales lie in memory. Only names: there are no such products."""


def scaled_grouped_mm(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: products of groups with scales are kernels of CUDA."""
    raise NotImplementedError(
        "nn.functional.scaled_grouped_mm: there is no such kernel here; use torch.mm for each group"
    )


class AsyncCollectiveTensor:
    """Only a name, for `isinstance`: collectives are waited for where they are called."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("AsyncCollectiveTensor: collectives here are waited for where they are called")


class SparseSemiStructuredTensor:
    """Only a name: there is no such layout."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: there are no semi-structured sparse tensors here")


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """Only a name: there is no such layout."""


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """Only a name: there is no such layout."""
