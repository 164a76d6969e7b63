"""`Parameter` and `Buffer`: tensors that a `Module` registers when they are assigned to it.

A parameter is a subclass of `Tensor` that shares its data; results of ops on it are plain tensors.
A buffer is a plain tensor with a marker attribute, which `isinstance(t, Buffer)` checks.
"""

from __future__ import annotations

from collections import OrderedDict

from .._base import Tensor, _disabled_torch_function_impl, empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex

    from typing_extensions import Self

__all__ = ["Buffer", "Parameter"]


class _ParameterMeta(type(Tensor)):
    def __instancecheck__(cls, instance: object) -> bool:
        marked = cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        return marked or super().__instancecheck__(instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a parameter of a module: assigned as an attribute, it appears in `parameters()`.

    Args:
        data (Tensor): its values, shared, of any shape; an empty tensor by default.
        requires_grad (bool): whether gradients are recorded. Default: True.

    Raises:
        RuntimeError: `data` is not floating point or complex and `requires_grad` is True.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = empty(0)
        kind = type(data)
        if kind is Tensor or kind is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): argument 'data' must be Tensor, not {kind.__name__}")
        param = data.detach().requires_grad_(requires_grad)
        if type(param) is not kind:
            # A subclass whose detach() returns a plain tensor becomes a plain parameter.
            return Tensor._make_subclass(cls, param.detach(), requires_grad)
        param._is_param = True
        return param

    _is_param = True
    # Results of ops on parameters are plain tensors.
    __torch_function__ = _disabled_torch_function_impl

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        state = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        args = (self.data, self.requires_grad, OrderedDict())
        if not state:
            return (_rebuild_parameter, args)
        return (_rebuild_parameter_with_state, (*args, state))


def _rebuild_parameter(data, requires_grad, backward_hooks):
    param = Parameter(data, requires_grad)
    if backward_hooks:
        param._backward_hooks = backward_hooks
    return param


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    param = _rebuild_parameter(data, requires_grad, backward_hooks)
    param.__dict__.update(state)
    return param


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """Marks a tensor as a buffer: assigned to a module, it appears in `buffers()` and not in `parameters()`.

    Args:
        data (Tensor): its values, shared; an empty tensor by default.
        persistent (bool): whether it is part of the module's `state_dict`. Default: True.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        if data is None:
            data = empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
