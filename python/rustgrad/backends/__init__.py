"""`rustgrad.backends`: queries about libraries that are not available.

Scripts write `backends.cudnn.benchmark = True` or ask `backends.mps.is_available()`; the switches are plain
attributes without effect, and nothing is available.
"""

import contextlib

from . import (
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
)

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "flags_frozen",
]

# The precision of float32 products, "none" for that of each library: kept, without effect.
fp32_precision = "none"


def flags_frozen() -> bool:
    """False: the switches can be set."""
    return False


# Libraries open this block around an assignment to a switch.
__allow_nonbracketed_mutation = contextlib.nullcontext


def __dir__() -> list[str]:
    return __all__
