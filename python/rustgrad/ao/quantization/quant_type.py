"""Kinds of quantisation."""

from __future__ import annotations

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """Whether activations are quantised by their own range, by one that was observed, in training, or not at all."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


_quant_type_to_str = {
    QuantType.STATIC: "static",
    QuantType.DYNAMIC: "dynamic",
    QuantType.QAT: "qat",
    QuantType.WEIGHT_ONLY: "weight_only",
}


def _get_quant_type_to_str(quant_type: QuantType) -> str:
    return _quant_type_to_str[quant_type]


def _quant_type_from_str(name: str) -> QuantType:
    for quant_type, text in _quant_type_to_str.items():
        if text == name:
            return quant_type
    raise ValueError(f"Unknown QuantType name '{name}'")


def __dir__() -> list[str]:
    return __all__
