"""A module called with other tensors in the places of its parameters and buffers, which come back afterwards."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..._base import Tensor
from ..modules.module import Module
from ..parallel import DataParallel

__all__ = ["functional_call"]

_MISSING: Any = object()


def _named_tensors(module):
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _for_all_names(module, given):
    """`given`, with a tied tensor under every name that the module has for it."""
    names_of: dict[int, list[str]] = {}
    for name, tensor in _named_tensors(module).items():
        names_of.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for names in names_of.values():
        values = [given[name] for name in names if name in given]
        if len({id(v) for v in values}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        if values:
            result.update(dict.fromkeys(names, values[0]))
    return result


def _owner(module, path):
    """The submodule of a dotted name."""
    for name in path.split(".") if path else ():
        if isinstance(child := module._modules.get(name), Module):
            module = child
            continue
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        module = getattr(module, name)
        if not isinstance(module, Module):
            raise TypeError(f"submodule `{path}`: {module} is not an instance of torch.nn.Module")
    return module


def _swap(module, path, value):
    """Puts a tensor into the place of a dotted name, or removes what is there; returns what was."""
    parent, _, name = path.rpartition(".")
    owner = _owner(module, parent)
    if value is not _MISSING and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before = table[name]
            if value is _MISSING:
                del table[name]
            else:
                table[name] = value
            return before
    before = getattr(owner, name, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if value is not _MISSING:
        setattr(owner, name, value)
    elif before is not _MISSING:
        delattr(owner, name)
    return before


def _check_names(module, given):
    known = set(_named_tensors(module))
    problems = [
        f"{what} key(s): {', '.join(map(repr, sorted(keys)))}."
        for what, keys in (("Unexpected", given.keys() - known), ("Missing", known - given.keys()))
        if keys
    ]
    if problems:
        lines = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{lines}")


@contextlib.contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    given = _for_all_names(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_names(module, given)
    before: dict[str, Any] = {}
    try:
        for name, value in given.items():
            before[name] = _swap(module, name, value)
        yield
    finally:
        after = {name: _swap(module, name, value) for name, value in reversed(before.items())}
        # What forward has put in their place belongs to the caller.
        parameters_and_buffers.update(
            {k: after[k] for k in parameters_and_buffers if after.get(k, _MISSING) is not _MISSING}
        )


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated: `func.functional_call`, which has the same arguments."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version "
        "of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def __dir__() -> list[str]:
    return __all__
