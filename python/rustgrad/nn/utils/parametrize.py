"""Parametrizations: a parameter of a module that is a function, itself a module, of the tensors that are trained.

The module gets a class of its own, with a property in the place of the parameter; the trained tensors lie in
`module.parametrizations`.
"""

from __future__ import annotations

import contextlib
import copy
import copyreg
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from ... import __future__
from ..._base import Tensor
from ...autograd.grad_mode import no_grad
from ...utils import swap_tensors
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

_M = TypeVar("_M", bound=Module)

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], Any] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """A block in which each parametrized tensor is computed once and kept until the outermost block ends."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(dest, src):
    """Gives a tensor the memory of another; its identity stays, so that optimizers keep it."""
    if __future__.get_swap_module_params_on_conversion():
        if isinstance(dest, Parameter) and not isinstance(src, Parameter):
            src = Parameter(src, dest.requires_grad)
        swap_tensors(dest, src)
    else:
        dest.set_(src)


def _check_same(what, tensor, names, values):
    """Compares dtype and shape of a result with those that must not change."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(tensor).__name__}.")
    for attribute, wanted in values.items():
        found = getattr(tensor, attribute)
        if found != wanted:
            before, after = (f"{name}.{attribute}" for name in names)
            raise ValueError(
                f"{what} may not change the {attribute} of the tensor, unless the `unsafe` flag is enabled.\n"
                f"{before}: {wanted}\n{after}: {found}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and the tensors that the first of them is a function of.

    Attributes:
        original: that tensor, where `right_inverse` of the first returns one; otherwise `original0`, `original1`, ...
        unsafe (bool): whether the parametrizations may change dtype and shape.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        facts = {"dtype": original.dtype, "shape": original.shape}
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            names = ("unparametrized", "parametrized")
            _check_same("Registering a parametrization", self(), names, facts)

    def _keep_one(self, original, new):
        for attribute in ("dtype", "device"):
            before, after = getattr(original, attribute), getattr(new, attribute)
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {attribute}.\n"
                    f"original.{attribute}: {before}\nright_inverse(original).{attribute}: {after}"
                )
        with no_grad():
            _set(original, new)
        _register(self, "original", original)

    def _keep_several(self, original, new):
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", tensor)

    def right_inverse(self, value: Tensor) -> None:
        """Makes the parametrized tensor `value`: the originals become `right_inverse` of it.

        Raises:
            RuntimeError: a parametrization has no `right_inverse`.
            ValueError: one returns something else than the originals.
        """
        with no_grad():
            result: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                result = module.right_inverse(result)
            if self.is_tensor:
                if not isinstance(result, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(result).__name__}")
                if result.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {result.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _set(self.original, result)
                return
            if not isinstance(result, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(result).__name__}.")
            if len(result) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(result)}."
                )
            for i, tensor in enumerate(result):
                original = getattr(self, f"original{i}")
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. "
                        f"Got element {i} of type {type(tensor).__name__}."
                    )
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has dtype "
                        f"{original.dtype}"
                    )
                _set(original, tensor)

    def forward(self) -> Tensor:
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in list(self)[1:]:
            value = module(value)
        return value


def _deepcopy(self, memo):
    """Copies attributes without pickling, which parametrized modules refuse."""
    if id(self) in memo:
        return memo[id(self)]
    # A class of its own: removing a parametrization removes the property of the class.
    cls = type(self)
    body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    replica = memo[id(self)] = object.__new__(type(cls.__name__, cls.__bases__, body))
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):
        if hasattr(self, slot):
            setattr(replica, slot, copy.deepcopy(getattr(self, slot), memo))
    return replica


def _getstate(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _inject_new_class(module):
    cls = type(module)
    body = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _inject_property(module, tensor_name):
    def get(self):
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, put))


def _check_another(module, tensor_name, parametrization):
    """Whether a further parametrization keeps dtype and shape, and its `right_inverse` does."""
    value = getattr(module, tensor_name)
    facts = {"dtype": value.dtype, "shape": value.shape}
    name = f"module.{tensor_name}"
    result = parametrization(value)
    _check_same("Registering a parametrization", result, (name, f"parametrization({name})"), facts)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for attribute, wanted in facts.items():
        if getattr(back, attribute) != wanted:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {attribute} as {name}, unless the "
                f"`unsafe` flag is enabled.\n{name}.{attribute}: {wanted}\nreturned {attribute}: {getattr(back, attribute)}"
            )


def register_parametrization(module: _M, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> _M:
    """Makes `module.tensor_name` the result of `parametrization` of the trained tensor; several apply in order.

    A `right_inverse(value)` of the parametrization makes the trained tensor from the present one, and makes it possible to
    assign to the attribute; where it returns several tensors, `parametrization.forward` takes as many.

    Args:
        module (Module): the module; its class becomes a subclass `Parametrized..`.
        tensor_name (str): name of a parameter or buffer.
        parametrization (Module): the function.
        unsafe (bool): whether it may change dtype and shape; then nothing is checked.

    Returns:
        The module.

    Raises:
        ValueError: there is no such tensor, or the parametrization changes dtype or shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        # Made first: where it refuses, the module stays as it is.
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module, or any if no name is given, has a parametrization."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: _M, tensor_name: str, leave_parametrized: bool = True) -> _M:
    """Makes a parametrized tensor a parameter or buffer again; returns the module.

    Args:
        leave_parametrized (bool): with its present value; otherwise with that of the trained tensor.

    Raises:
        ValueError: it is not parametrized, or `leave_parametrized` is False and there are several trained tensors.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
            "of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: _M, tensor_name: str | None = None) -> _M:
    """Gives a module the parametrizations of another and their trained tensors; returns `to_module`.

    Args:
        tensor_name (str, optional): only those of this tensor.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, key, getattr(source, key))
    return to_module


def __dir__() -> list[str]:
    return __all__
