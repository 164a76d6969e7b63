"""Settings of CUDA's libraries, which are not available: stored, without effect."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

from .._C import Tensor

matmul: SimpleNamespace = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=False,
    allow_bf16_reduced_precision_reduction=False,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)
# Which implementations of attention are allowed: the operands alone decide which one runs.
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}

_linalg = "default"


def is_built() -> bool:
    """False: rustgrad is built without CUDA."""
    return False


def enable_flash_sdp(enabled: bool) -> None:
    """Stored, without effect."""
    _attention["flash"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Stored, without effect."""
    _attention["mem_efficient"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Stored, without effect."""
    _attention["math"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Stored, without effect."""
    _attention["cudnn"] = bool(enabled)


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` stored last; True at first."""
    return _attention["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` stored last; True at first."""
    return _attention["mem_efficient"]


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` stored last; True at first."""
    return _attention["math"]


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` stored last; True at first."""
    return _attention["cudnn"]


class SDPAParams(NamedTuple):
    """What a call of `scaled_dot_product_attention` hands to its kernel."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool


def is_flash_attention_available() -> bool:
    """False: there are no kernels of CUDA's."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False: there are no kernels of CUDA's. With `debug` PyTorch warns of its reasons."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


def preferred_linalg_library(backend: str | None = None) -> str:
    """Stores which of CUDA's libraries to prefer, without effect, and returns the stored one: "default" at first.

    Raises:
        RuntimeError: a name that PyTorch does not have.
    """
    global _linalg
    if backend is not None:
        if backend not in ("default", "cusolver", "magma"):
            raise RuntimeError("Unknown input value. Choose from: ['default', 'cusolver', 'magma'].")
        _linalg = backend
    return _linalg


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict]:
    """The deprecated form of `nn.attention.sdpa_kernel`: the settings are stored in the block, without effect."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
        "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    before = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _attention.update(before)


def __getattr__(name: str) -> object:
    if name == "SDPBackend":
        from ..nn.attention import SDPBackend

        return SDPBackend
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
