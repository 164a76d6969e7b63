"""Modules whose activations are recomputed in backward, or wait on the CPU: wrappers, whose state dicts have the names without them."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import _recursive_wrap, lambda_auto_wrap_policy
from ...utils import _replace_by_prefix

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(enum.Enum):
    """Which form of `utils.checkpoint`."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module):
    """A module around another, whose attributes it has, and whose parameters' names."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside computes; a subclass defines how."""
        raise ValueError("Subclasses should implement this")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_CHECKPOINT_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """The parameters, by names without the wrapper."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), param

    @staticmethod
    def _post_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
        _replace_by_prefix(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _replace_by_prefix(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class OffloadWrapper(ActivationWrapper):
    """A module whose saved tensors wait on the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside computes."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that is called through `utils.checkpoint`.

    Args:
        mod (Module): the module.
        checkpoint_impl (CheckpointImpl): which form.
        checkpoint_fn (function, optional): called in the place of `utils.checkpoint.checkpoint`, with these keyword arguments.
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = functools.partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module inside computes."""
        inside = self._checkpoint_wrapped_module
        if not kwargs or self.checkpoint_impl is CheckpointImpl.NO_REENTRANT:
            return self.checkpoint_fn(inside, *args, **kwargs)
        # The reentrant form takes positional arguments alone.
        names, count = tuple(kwargs), len(args)
        return self.checkpoint_fn(
            lambda *given: inside(*given[:count], **dict(zip(names, given[count:], strict=True))),
            *args,
            *kwargs.values(),
        )


def offload_wrapper(module: Module) -> Module:
    """A module whose saved tensors wait on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """A module whose activations are recomputed in backward: see `CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[[Module, bool, int], bool] | None = None,
) -> None:
    """Wraps, in place, the submodules of a model for which `check_fn` is true, or which a policy of `fsdp.wrap` chooses."""
    _recursive_wrap(
        module=model,
        auto_wrap_policy=auto_wrap_policy or functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn),
        wrapper_cls=checkpoint_wrapper_fn,
        ignored_modules=set(),
        ignored_params=set(),
        only_wrap_children=True,
    )
