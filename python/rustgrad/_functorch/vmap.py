"""Where PyTorch keeps `vmap` and the functions of trees that it uses."""

from ..func import vmap
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten  # noqa: F401

__all__ = ["TreeSpec", "tree_flatten", "tree_unflatten", "vmap"]
