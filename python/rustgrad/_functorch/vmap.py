"""Where PyTorch keeps `vmap`, the functions of trees that it uses, and its parts, which libraries replace.

Once one of `_process_batched_inputs`, `_create_batched_inputs` and `_unwrap_batched` is another function than the one defined here,
`func.vmap` calls all three: `func/_vmap_parts.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .._base import Tensor as Tensor
from ..func import vmap
from ..func._vmap import _flat_out_dims, _inputs
from ..func._vmap import _name as _get_name
from ..func._vmap_parts import add_batch_dim as _add_batch_dim
from ..func._vmap_parts import maybe_remove_batch_dim as _maybe_remove_batch_dim
from ..func._vmap_parts import remove_batch_dim as _remove_batch_dim  # noqa: F401
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten  # noqa: F401

__all__ = ["TreeSpec", "tree_flatten", "tree_unflatten", "vmap"]


def _process_batched_inputs(in_dims: Any, args: Any, func: Callable[..., Any]) -> tuple[int, list[Any], list[Any], Any]:
    """(number of examples, dimension of each argument, arguments, their structure)."""
    return _inputs(func, in_dims, args)  # type: ignore[no-any-return]


def _create_batched_inputs(flat_in_dims: list[Any], flat_args: list[Any], vmap_level: int, args_spec: Any) -> Any:
    """The arguments that the function gets, in their structure."""
    pairs = zip(flat_args, flat_in_dims, strict=True)
    return tree_unflatten([a if d is None else _add_batch_dim(a, d, vmap_level) for a, d in pairs], args_spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """The results of the function with the batch where `out_dims` says."""
    flat, spec = tree_flatten(batched_outputs)
    pairs = zip(flat, _flat_out_dims(func, out_dims, batched_outputs, spec), strict=True)
    name = _get_name(func)
    return tree_unflatten([_maybe_remove_batch_dim(name, o, vmap_level, batch_size, d) for o, d in pairs], spec)


_PARTS = ("_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched")
_OWN = tuple(globals()[name] for name in _PARTS)


def replaced() -> Any:
    """This module, if a library has put a function of its own in the place of one of the parts; else None."""
    return None if tuple(globals()[name] for name in _PARTS) == _OWN else sys.modules[__name__]
