"""`rustgrad.backends`: queries about libraries that are not available.

Scripts write `backends.cudnn.benchmark = True` or ask `backends.mps.is_available()`; the switches are plain
attributes without effect, and nothing is available.
"""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum"]


def __dir__() -> list[str]:
    return __all__
