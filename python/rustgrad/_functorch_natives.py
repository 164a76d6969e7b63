"""`torch._C._functorch`: questions that libraries ask a tensor in the middle of a transform, and the parts of `vmap` that they call.

No tensor is a wrapper here: a function that is mapped sees ordinary tensors, which depend on the example or do not.
"""

from __future__ import annotations

from typing import Any

from . import _C
from ._absent import getattr_of
from ._base import Tensor
from .func._vmap_parts import add_batch_dim as _add_batch_dim  # noqa: F401
from .func._vmap_parts import is_marked
from .func._vmap_parts import remove_batch_dim as _remove_batch_dim  # noqa: F401

__all__ = ["get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor"]


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor differs from example to example of a `vmap` that is running."""
    return isinstance(tensor, Tensor) and (
        is_marked(tensor) or (_C._vmap_depth() > 0 and _C._vmap_is_batched([tensor]))
    )


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: `grad` records at ordinary tensors."""
    return False


is_functorch_wrapped_tensor = is_batchedtensor


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


__getattr__ = getattr_of(__name__)
