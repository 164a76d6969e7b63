"""The names that `vmap` had before `torch.func`: programs of that time import them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .func import vmap as _of_func
from .utils._pytree import tree_flatten, tree_unflatten

__all__: list[str] = []


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`func.vmap`; deprecated."""
    text = "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`func.vmap`, of a function that may return None for some results if `allow_none_pass_through`."""
    if not allow_none_pass_through:
        return _of_func(func, in_dims, out_dims)

    def mapped(*args: Any) -> Any:
        made: list[Any] = []

        def without_none(*examples: Any) -> tuple[Any, ...]:
            made[:] = tree_flatten(func(*examples))
            return tuple(value for value in made[0] if value is not None)

        results = iter(_of_func(without_none, in_dims, out_dims)(*args))
        return tree_unflatten([None if value is None else next(results) for value in made[0]], made[1])

    return mapped
