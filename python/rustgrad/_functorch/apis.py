"""Where PyTorch keeps `vmap` and `grad`; those of `func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..func import grad, grad_and_value, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` in pieces of about equal size, whose results are put together."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        from ..utils._pytree import tree_leaves

        if chunks == 1:
            return vmap(func, in_dims, out_dims, randomness)(*args, **kwargs)
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        found = next(
            leaf.size(dim)
            for value, dim in zip(args, dims, strict=True)
            if isinstance(dim, int)
            for leaf in tree_leaves(value)
        )
        size = -(-found // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return mapped
