"""`Compare`, where PyTorch keeps it."""

from .._compare import Compare

__all__ = ["Compare"]


def __dir__() -> list[str]:
    return __all__
