"""Settings of CUDA's libraries, which are not available: stored, without effect."""

from types import SimpleNamespace

matmul: SimpleNamespace = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)


def is_built() -> bool:
    """False: rustgrad is built without CUDA."""
    return False
