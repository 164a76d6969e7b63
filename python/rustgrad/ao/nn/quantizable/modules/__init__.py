"""Modules that can be observed inside."""

from __future__ import annotations

from .activation import MultiheadAttention
from .rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]


def __dir__() -> list[str]:
    return __all__
