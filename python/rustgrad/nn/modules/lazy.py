"""`LazyModuleMixin`: modules that learn the shapes of their parameters from the first input."""

from __future__ import annotations

import itertools
from typing import Any, NoReturn

from ..._absent import getattr_of
from ...autograd.grad_mode import no_grad
from ..parameter import is_lazy
from .module import Module

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Mixed into a module whose parameters or buffers start uninitialised.

    The first call, or loading a state dict, gives them a shape, and the module becomes one of `cls_to_become`. A subclass
    registers `UninitializedParameter`s and defines `initialize_parameters(*args, **kwargs)`, which gets the arguments of
    the first `forward` and materializes them. Make the optimizer after the first call.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        transient = self._non_persistent_buffers_set
        saved = ((k, v) for k, v in self._buffers.items() if k not in transient)
        for name, value in itertools.chain(self._parameters.items(), saved):
            if value is not None:
                destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Materializes what the state dict has with a shape."""
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(value) and not is_lazy(given):
                with no_grad():
                    value.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materializes the parameters by the arguments of the first `forward`; every subclass defines it.

        Raises:
            NotImplementedError: a subclass does not.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of the module itself is still uninitialised."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> NoReturn:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
