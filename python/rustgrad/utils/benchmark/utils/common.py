"""`Measurement` and its parts, where PyTorch keeps them."""

from .._timer import Measurement, TaskSpec, select_unit

__all__ = ["Measurement", "TaskSpec", "select_unit"]


def __dir__() -> list[str]:
    return __all__
