"""`Parameter` and `Buffer`: tensors that a `Module` registers when they are assigned to it.

A parameter is a subclass of `Tensor` that shares its data; results of ops on it are plain tensors.
A buffer is a plain tensor with a marker attribute, which `isinstance(t, Buffer)` checks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, SupportsIndex

from .. import _utils, overrides
from .._base import Tensor, _disabled_torch_function_impl, empty
from .._C import dtype as _dtype
from .._typing import DeviceLike, Self

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


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
            if "_wrapped_device" in data.__dict__:
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() returns an instance of the "
                    f"same type, but return type {type(param).__name__} was found instead. To use the type as a Parameter, please "
                    "correct the detach() semantics defined by its __torch_dispatch__() implementation."
                )
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
            return (_utils._rebuild_parameter, args)
        return (_utils._rebuild_parameter_with_state, (*args, state))


overrides._PLAIN.add(Parameter)


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


class UninitializedTensorMixin:
    """A tensor of unknown shape: it has a dtype and a device, can change both, and becomes a tensor by `materialize`."""

    cls_to_become: type[Tensor]
    # The functions and methods that need no shape.
    _allowed_methods = frozenset(
        "__hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to _to_copy "
        "get_device detach requires_grad_".split()
    )

    def materialize(
        self, shape: int | Sequence[int], device: DeviceLike | None = None, dtype: _dtype | None = None
    ) -> None:
        """Makes it an ordinary parameter or tensor with uninitialised values.

        Args:
            shape (int or sequence of int): its shape.
            device (device, optional), dtype (dtype, optional): instead of those it has.
        """
        data = self.data
        self.data = empty(
            (shape,) if isinstance(shape, int) else tuple(shape),
            device=data.device if device is None else device,
            dtype=data.dtype if dtype is None else dtype,
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> NoReturn:
        """RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        """RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return (type(self), (self.requires_grad,))

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # The functions of properties, such as `Tensor.grad.__get__`, are method wrappers.
        if getattr(func, "__name__", "") in cls._allowed_methods or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` "
            f"or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """Whether `param` is an `UninitializedParameter` or `UninitializedBuffer`."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet.

    Args:
        requires_grad (bool): whether gradients are recorded. Default: True.
        device (device, optional), dtype (dtype, optional): what it has when it is materialized.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: DeviceLike | None = None, dtype: _dtype | None = None) -> Self:
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)

    @property
    def data(self) -> Tensor:
        # As that of every parameter it is a plain tensor, which can be filled before the shape is known.
        return Tensor.data.__get__(self).as_subclass(Tensor)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet.

    Args:
        requires_grad (bool): whether gradients are recorded. Default: False.
        device (device, optional), dtype (dtype, optional): what it has when it is materialized.
        persistent (bool): whether it is part of the module's `state_dict`. Default: True.
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: DeviceLike | None = None,
        dtype: _dtype | None = None,
        persistent: bool = True,
    ) -> Self:
        buffer = Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
