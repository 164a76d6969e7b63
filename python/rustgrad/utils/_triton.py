"""Whether Triton's compiler can be used: it cannot, as there are no CUDA devices."""

from __future__ import annotations

__all__: list[str] = []


def has_triton_package() -> bool:
    """False: the package would have nothing to run on."""
    return False


def has_triton() -> bool:
    """False."""
    return False


has_triton_tma = has_triton_tma_device = has_triton_stable_tma_api = has_triton_tensor_descriptor_host_tma = has_triton
has_triton_experimental_host_tma = has_datacenter_blackwell_tma_device = has_triton
