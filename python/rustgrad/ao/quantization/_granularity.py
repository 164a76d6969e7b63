"""How fine scales are: for a tensor, a channel, a group or a block; and the base of observers that are told so."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...nn.modules.module import Module

__all__: list[str] = []
_MODULE = __name__.rpartition(".")[0] + ".observer"


class MappingType(enum.Enum):
    """How numbers are mapped to integers: about zero, or from the least to the greatest."""

    SYMMETRIC = enum.auto()
    SYMMETRIC_NO_CLIPPING_ERR = enum.auto()
    ASYMMETRIC = enum.auto()


class ZeroPointDomain(enum.Enum):
    """Whether a zero point is an integer, a float, or absent."""

    INT = enum.auto()
    FLOAT = enum.auto()
    NONE = enum.auto()


class TorchAODType(enum.Enum):
    """Names of integers with fewer than eight bits."""

    INT1 = enum.auto()
    INT2 = enum.auto()
    INT3 = enum.auto()
    INT4 = enum.auto()
    INT5 = enum.auto()
    INT6 = enum.auto()
    INT7 = enum.auto()


@dataclass(frozen=True)
class Granularity:
    """The base of granularities."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """A scale for each block of a shape."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One scale."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """A scale for each index of a dimension."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """A scale for each group of elements along the last dimension."""

    group_size: int


class PerRow(Granularity):
    """A scale for each row of the last dimension."""


class PerToken(Granularity):
    """A scale for each row of the last dimension of activations."""


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The shape of the elements that share a scale. ValueError: a granularity of another class."""
    shape = list(input_shape)
    if isinstance(granularity, PerTensor):
        return tuple(shape)
    if isinstance(granularity, PerAxis):
        shape[granularity.axis] = 1
        return tuple(shape)
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(shape) - 1) + (shape[-1],)
    if isinstance(granularity, PerGroup):
        return (1,) * (len(shape) - 1) + (granularity.group_size,)
    if isinstance(granularity, PerBlock):
        return tuple(granularity.block_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(ABC, Module):
    """What observers derive from that are told a granularity."""

    def __init__(
        self, mapping_type: MappingType, target_dtype: Any, granularity: Granularity, quant_min: Any = None, quant_max: Any = None,
        eps: Any = None, scale_dtype: Any = None, zero_point_dtype: Any = None, preserve_zero: bool = True,
        zero_point_domain: Any = ZeroPointDomain.INT, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type, self.target_dtype, self.granularity = mapping_type, target_dtype, granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        self.block_size: Any = None
        self.__dict__.update(kwargs)

    @classmethod
    def with_args(cls, **kwargs: Any) -> Any:
        """A constructor with these arguments filled in."""
        from .observer import _with_args

        return _with_args(cls, **kwargs)

    @abstractmethod
    def forward(self, input: Any) -> Any:
        """Sees the input, and returns it."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""


for _value in [v for v in vars().values() if isinstance(v, type) and v.__module__ == __name__]:
    _value.__module__ = _MODULE  # where PyTorch has them, and pickles look


def __dir__() -> list[str]:
    return __all__
