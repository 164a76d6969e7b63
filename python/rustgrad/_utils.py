"""The functions named in pickles of tensors, in PyTorch's checkpoints as `torch._utils`, with these arguments.

They run while a file is read, so they check their arguments and only build tensors.
"""

import copyreg
import sys
from collections import OrderedDict

from . import _C
from ._absent import getattr_of
from ._base import Tensor, empty_strided
from .storage import _NAMES, TypedStorage, UntypedStorage, storage_of

__all__ = []


class ExceptionWrapper:
    """An exception on its way to another process or thread: its class, and its traceback as text.

    Args:
        exc_info (tuple): of `sys.exc_info()`; by default of the exception that is being handled.
        where (str): the place, for the message.
    """

    def __init__(self, exc_info=None, where="in background"):
        import traceback  # imported where it is used, since it takes long

        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raises an exception of the same class (RuntimeError if it cannot be built), with the traceback in its message."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            # A KeyError prints the repr of its argument, in which lines do not break.
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            exception = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        try:
            raise exception
        finally:
            del exception  # Or the exception would refer to itself through this frame.


class KeyErrorMessage(str):
    """A string whose repr is itself."""

    def __repr__(self):
        return str(self)


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


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_sparse_tensor(layout, data):
    from .sparse._rebuild import rebuilt

    return rebuilt(layout, data)


def _rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks):
    from ._quantized._protocols import rebuilt

    if not isinstance(storage, TypedStorage):
        raise RuntimeError(f"load: expected a typed storage under a quantised tensor, got {type(storage).__name__}")
    return rebuilt(storage, storage_offset, size, stride, quantizer_params)


def _rebuild_nested(layout, value, requires_grad, parts):
    from .nested._protocols import rebuilt

    return rebuilt(layout, value, requires_grad, parts)


def _rebuild_masked(data, mask, requires_grad):
    from .masked import MaskedTensor

    return MaskedTensor(data, mask, requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    device = "gpu" if getattr(device, "type", None) == "cuda" else device
    return Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        dtype=dtype,
        storage_offset=storage_offset,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


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
    if not state:
        return made
    if new_type.__setstate__ is not Tensor.__setstate__:
        made.__setstate__(state)
        return made
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    made.__dict__.update(attributes or {})
    # No other names: the file must not set properties.
    for name in set(copyreg._slotnames(new_type)).intersection(slots or ()):
        setattr(made, name, slots[name])
    return made


def _slots_of(tensor):
    """The values of the slots that a subclass declares."""
    kind = type(tensor)
    names = () if kind is Tensor else copyreg._slotnames(kind)
    return {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}


def _warn_of_hooks(tensor):
    """The warning of a pickle that a tensor's hooks do not go into it."""
    if tensor.requires_grad and tensor._backward_hooks:
        from .utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)


def _parts_of(t):
    """(function, arguments) that make a tensor without its class and attributes, as PyTorch's pickles have them."""
    if t.is_meta:
        return _rebuild_meta_tensor_no_storage, (t.dtype, tuple(t.shape), t.stride(), t.requires_grad)
    where = (t.storage_offset(), tuple(t.shape), t.stride(), t.requires_grad, OrderedDict())
    if t.dtype in _NAMES:
        return _rebuild_tensor_v2, (t._typed_storage(), *where)
    return _rebuild_tensor_v3, (storage_of(t), *where, t.dtype)


def _state_of(tensor, attributes=None):
    """What a pickle holds of a tensor beside its numbers: its attributes and slots, or what its class says."""
    own = getattr(type(tensor), "__getstate__", None)
    if own is not getattr(object, "__getstate__", None):
        return own(tensor)
    attributes = dict(tensor.__dict__) if attributes is None else attributes
    slots = _slots_of(tensor)
    return (attributes, slots) if slots else attributes


def _flatten_dense_tensors(tensors):
    """The elements of tensors of one dtype in a 1-d tensor."""
    return _C.ops["cat"]([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Views of a 1-d tensor with the shapes of `tensors`, one after the other."""
    views, start = [], 0
    for tensor in tensors:
        views.append(flat.narrow(0, start, tensor.numel()).view(tensor.shape))
        start += tensor.numel()
    return tuple(views)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The index of a GPU given as a device, its name or a number; -1 for the CPU where `allow_cpu`."""
    if isinstance(device, int):
        return device
    place = _C.device(device) if isinstance(device, str) else device
    if isinstance(place, _C.device):
        if place.type == "cpu" and allow_cpu:
            return -1 if place.index is None else place.index
        if place.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if place.index is not None:
            return place.index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return 0


__getattr__ = getattr_of(__name__)
