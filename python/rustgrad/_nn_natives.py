"""`_C._nn`: helpers of `nn` that libraries call by their names in PyTorch's extension module."""

from . import _C
from ._utils import _flatten_dense_tensors as flatten_dense_tensors
from ._utils import _unflatten_dense_tensors as unflatten_dense_tensors

__all__ = ["flatten_dense_tensors", "unflatten_dense_tensors"]


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of the arguments of `Module.to`; None for what is not given."""
    device, dtype, non_blocking, _, layout = _C._to_arguments(args, kwargs)
    return None if device is None else _C.device(device), dtype, non_blocking, layout


def __getattr__(name):
    if name[:2] != "__":
        from .nn import functional

        if hasattr(functional, name):
            return getattr(functional, name)
    raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
