"""`rustgrad.functional`: top-level functions, in the module where PyTorch defines them."""

import rustgrad as _rustgrad

from ._absent import getattr_of as _getattr_of

__all__ = sorted(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul "
    "einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index".split()
)
globals().update({name: getattr(_rustgrad, name) for name in __all__})
__getattr__ = _getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
