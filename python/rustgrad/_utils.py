"""The functions named in pickles of tensors, in PyTorch's checkpoints as `torch._utils`, with these arguments.

They run while a file is read, so they check their arguments and only build tensors.
"""

from . import _C
from ._C import Tensor
from .storage import TypedStorage, UntypedStorage

__all__ = []


def _element_size(dtype):
    """Bytes per element."""
    return dtype.itemsize


def _over(storage, offset, size, stride, dtype):
    if not isinstance(storage, (TypedStorage, UntypedStorage)):
        raise RuntimeError(f"load: expected a storage under a tensor, got {type(storage).__name__}")
    return _C._over_storage(storage.untyped()._tensor, dtype, offset, list(size), list(stride))


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _over(storage, storage_offset, size, stride, storage.dtype)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    tensor = _over(storage, storage_offset, size, stride, dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    parameter.__dict__.update(state)
    return parameter


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor with attributes, or of a subclass."""
    made = func(*args)
    if type(made) is not new_type:
        made = Tensor._make_subclass(new_type, made, made.requires_grad)
    if state:
        made.__dict__.update(state)
    return made
