"""What `functorch.experimental` means under `python -m rustgrad`."""

from __future__ import annotations

from .._absent import getattr_of
from ..func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_
from . import _control_flow_names as control_flow
from .apis import chunk_vmap

__all__ = [
    "chunk_vmap",
    "control_flow",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
