"""`rustgrad.ao.pruning`: masks of weights that training keeps at zero, and schedules of how many there are.

A sparsifier attaches masks to a model (`prepare`), chooses them anew (`step`) and leaves zeros in the weights (`squash_mask`).
"""

from __future__ import annotations

from ..._absent import getattr_of
from .scheduler.base_scheduler import BaseScheduler
from .scheduler.cubic_scheduler import CubicSL
from .scheduler.lambda_scheduler import LambdaSL
from .sparsifier.base_sparsifier import BaseSparsifier
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier
from .sparsifier.utils import FakeSparsity, fqn_to_module, get_arg_info_from_tensor_fqn, module_to_fqn
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier

__all__ = ["BaseScheduler", "BaseSparsifier", "CubicSL", "FakeSparsity", "LambdaSL", "NearlyDiagonalSparsifier",
           "WeightNormSparsifier", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_to_fqn"]  # fmt: skip

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
