"""The older name of `distributed.tensor`."""

from ..tensor import DTensor

__all__ = ["DTensor"]
