"""Decorators for functions that would tell an exporter how to write an op."""

from __future__ import annotations

from typing import Any

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors: str) -> Any:
    """A decorator that returns its function: nothing is exported."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, **options: Any) -> Any:
    """A decorator that returns its function: nothing is exported."""
    return lambda fn: fn
