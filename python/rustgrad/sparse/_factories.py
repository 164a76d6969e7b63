"""The ops that make tensors, where a sparse layout is asked for: `zeros(2, 3, layout=sparse_coo)`."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from ._elementwise import new_zeros, zeros_like

__all__ = ["call"]


def _zeros(*size, out=None, dtype=None, device=None, memory_format=None, **options):
    if out is not None:
        raise RuntimeError("zeros: a sparse tensor cannot be written into out. Hint: leave out= away")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    device = _C.get_default_device() if device is None else device
    return new_zeros(None, *size, dtype=dtype, device=device, **options)


_MAKE = {
    "zeros": _zeros,
    "empty": _zeros,
    "zeros_like": lambda input, **options: zeros_like(input, **options),
    "empty_like": lambda input, **options: zeros_like(input, **options),
    "new_zeros": new_zeros,
    "new_empty": new_zeros,
}


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The result of the op `name` with a `layout` that is sparse: a tensor without elements.

    Raises:
        NotImplementedError: the op has other elements than zeros.
    """
    make = _MAKE.get(name)
    if make is None:
        raise NotImplementedError(f"{name}: expected layout torch.strided, got {kwargs['layout']!r}")
    return make(*args, **kwargs)
