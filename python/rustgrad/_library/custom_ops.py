"""Operators that programs define: `custom_op`."""

from ..library import custom_op

__all__ = ["custom_op"]
