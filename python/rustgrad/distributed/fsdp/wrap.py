"""Which submodules of a module are wrapped, and wrapping them: policies, which are functions of modules alone.

A policy is asked before a module's children are walked through (`recurse=True`: whether to), and for the module itself, with
the number of elements of parameters that nothing inside has wrapped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from ...nn.modules.activation import MultiheadAttention
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """True: every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """The modules for which a function is true."""
    return recurse or lambda_fn(module)


def _module_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, module_classes: Iterable[type[Module]]
) -> bool:
    """The modules of some classes."""
    return recurse or isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """The modules of some classes, such as the layers of a transformer."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(
    module: Module, module_classes: Sequence[type], recurse: bool, *args: Any, **kwargs: Any
) -> bool:
    """The modules of some classes."""
    return recurse or isinstance(module, tuple(module_classes))


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]) -> bool:
    """The modules that one of several policies chooses."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Modules with at least `min_num_params` elements of parameters that nothing inside has wrapped.

    Args:
        force_leaf_modules (set of type): whose children are left alone. Default: `FORCE_LEAF_MODULES`.
        exclude_wrap_modules (set of type): which are not wrapped themselves. Default: `EXCLUDE_WRAP_MODULES`.
    """
    policy: Any = size_based_auto_wrap_policy
    leaves = policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}  # type: ignore[attr-defined]


class _Policy:
    """A policy as an object: it gives the modules that it chooses, with the arguments of their wrappers."""

    def _run_policy(
        self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]
    ) -> dict[Module, dict[str, Any]]:
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """The modules of some classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return _module_wrap_policy(module, recurse, -1, self._module_classes)

    def _run_policy(
        self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]
    ) -> dict[Module, dict[str, Any]]:
        classes = tuple(self._module_classes)
        return {
            m: dict(root_kwargs) for m in root_module.modules() if m not in ignored_modules and isinstance(m, classes)
        }

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """The modules for which a function gives True, or a dict of arguments of their wrapper."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(
        self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]
    ) -> dict[Module, dict[str, Any]]:
        chosen: dict[Module, dict[str, Any]] = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                    f"{answer}"
                )
            if answer:
                chosen[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return chosen


class _ConfigAutoWrap:
    """What `enable_wrap` has set."""

    in_autowrap_context: ClassVar[bool] = False
    wrapper_cls: ClassVar[Any] = None
    kwargs: ClassVar[dict[str, Any]] = {}


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A block in which `wrap` wraps modules by `wrapper_cls`, with these arguments."""
    here = _ConfigAutoWrap
    if here.in_autowrap_context:
        raise NotImplementedError(
            "You are already within an autowrap context and we currently do not supported nested autowrap."
        )
    here.in_autowrap_context, here.wrapper_cls, here.kwargs = True, wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        here.in_autowrap_context, here.wrapper_cls, here.kwargs = False, None, {}


def _wrap(module: Module, wrapper_cls: Callable[..., Any], **kwargs: Any) -> Any:
    """A wrapper of a module, with the arguments that its `_wrap_overrides` replaces."""
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """In a block of `enable_wrap` the module in its wrapper, elsewhere the module itself."""
    if not _ConfigAutoWrap.in_autowrap_context:
        return module
    wrapped: Module = _wrap(module, _ConfigAutoWrap.wrapper_cls, **{**_ConfigAutoWrap.kwargs, **wrap_overrides})
    return wrapped


def _recursive_wrap(
    module: Module,
    auto_wrap_policy: Callable[..., bool],
    wrapper_cls: Callable[..., Any],
    ignored_modules: set[Module],
    ignored_params: set[Parameter],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[Any, int]:
    """Wraps the submodules that a policy chooses, innermost first; (the module or its wrapper, elements wrapped in it).

    Raises:
        AssertionError: a submodule is wrapped already.
    """
    if isinstance(wrapper_cls, type):
        for _, child in module.named_modules():
            if child not in ignored_modules and isinstance(child, wrapper_cls):
                raise AssertionError(f"Child module {child} is already wrapped by {wrapper_cls}")
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    inside = 0
    for name, child in module.named_children():
        if child in ignored_modules:
            continue
        wrapped, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        setattr(module, name, wrapped)
        inside += count
    remaining = numel - inside
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=remaining):
        return _wrap(module, wrapper_cls, **kwargs), numel
    return module, inside


def __dir__() -> list[str]:
    return __all__
