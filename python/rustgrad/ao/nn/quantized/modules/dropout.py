"""Quantised dropout, which drops nothing."""

from __future__ import annotations

from typing import Any

from ..... import nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """The input: quantised models are not trained."""

    def forward(self, input: Any) -> Any:
        """`input`."""
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of a float one."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised module of a float one."""
        return cls(mod.p, mod.inplace)


def __dir__() -> list[str]:
    return __all__
