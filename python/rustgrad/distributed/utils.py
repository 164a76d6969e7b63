"""Helpers of PyTorch's wrappers of modules: arguments to devices and dtypes, states of modules made equal in all processes."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Container, Sequence
from typing import Any

from .._base import Tensor, dtype
from ..nn.modules.module import Module
from ..nn.utils.rnn import PackedSequence
from .group import _checked
from .objects import all_gather_object
from .reducer import broadcast_coalesced

__all__: list[str] = []


def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """(all values, the names of the last ones)."""
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args: tuple[Any, ...], kwarg_keys: tuple[str, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that `_pack_kwargs` was given."""
    if len(kwarg_keys) > len(flat_args):
        raise AssertionError(f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    count = len(flat_args) - len(kwarg_keys)
    return flat_args[:count], dict(zip(kwarg_keys, flat_args[count:], strict=True))


def _apply_to_tensors(fn: Callable[[Tensor], Any], container: Any) -> Any:
    """`fn` of each tensor in nested containers."""
    if isinstance(container, Tensor):
        return fn(container)
    if isinstance(container, PackedSequence):
        _apply_to_tensors(fn, container.data)
        return container
    if isinstance(container, dict):
        made = type(container)() if hasattr(container, "move_to_end") else {}
        made.update({key: _apply_to_tensors(fn, value) for key, value in container.items()})
        return made
    if isinstance(container, tuple) and hasattr(container, "_fields"):
        return type(container)(*(_apply_to_tensors(fn, value) for value in container))
    if isinstance(container, (list, tuple, set)):
        return type(container)(_apply_to_tensors(fn, value) for value in container)
    return container


def _cast_forward_inputs(dtype: dtype | None, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Arguments with their floating-point tensors in a dtype."""
    if dtype is None:
        return args, kwargs

    def cast(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() and x.dtype != dtype else x

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _recursive_to(inputs: Any, target_device: Any, use_side_stream_for_tensor_copies: bool) -> list[Any]:
    """[nested containers with their tensors on a device]."""
    return [_apply_to_tensors(lambda t: t.to(target_device), inputs)]


def _to_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_device: Any,
    use_side_stream_for_tensor_copies: bool,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """((arguments on a device,), (keyword arguments on it,))."""
    moved = _recursive_to(inputs, target_device, use_side_stream_for_tensor_copies)
    return tuple(moved), tuple(_recursive_to(kwargs or {}, target_device, use_side_stream_for_tensor_copies))


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """AssertionError, with message and stack printed as well, unless a condition holds: errors in hooks may be lost."""
    if not cond:
        print(s)
        traceback.print_stack()
        if raise_assertion_error:
            raise AssertionError(s)


def _verify_param_shape_across_processes(process_group: Any, tensors: Sequence[Tensor], logger: Any = None) -> None:
    """RuntimeError unless all processes have tensors of the same shapes."""
    group = _checked(process_group)
    shapes = [tuple(t.shape) for t in tensors]
    every: list[Any] = [None] * group.size()
    all_gather_object(every, shapes, group=group)
    for rank, theirs in enumerate(every):
        if theirs != shapes:
            raise RuntimeError(
                f"expected the same shapes in all processes, got {theirs} in process {rank} and {shapes} in process {group.rank()}"
            )


def _sync_params_and_buffers(
    process_group: Any, module_states: Sequence[Tensor], broadcast_bucket_size: int, src: int
) -> None:
    """Gives all processes the tensors of process `src`, in place."""
    if module_states:
        broadcast_coalesced(module_states, _checked(process_group), src)


def _sync_module_states(
    module: Module,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Container[str],
    broadcast_buffers: bool = True,
) -> None:
    """Gives all processes the parameters and buffers of process `src`, in place."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [t.detach() for name, t in named if name not in params_and_buffers_to_ignore]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _replace_by_prefix(state_dict: dict[str, Any], old_prefix: str, new_prefix: str) -> None:
    """Replaces a prefix of keys, in place."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in [key for key in state_dict if key.startswith(old_prefix)]:
        state_dict[new_prefix + key[len(old_prefix) :]] = state_dict.pop(key)


def _get_root_modules(modules: Sequence[Module]) -> list[Module]:
    """The modules that are parts of no other of them."""
    return [m for m in modules if not any(m is not other and m in set(other.modules()) for other in modules)]


def __dir__() -> list[str]:
    return __all__
