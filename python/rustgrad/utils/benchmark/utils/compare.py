"""`Compare`, where PyTorch keeps it."""

from .._compare import Compare

__all__ = ["Compare"]
