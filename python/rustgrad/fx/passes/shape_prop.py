"""`ShapeProp`: runs a graph and notes the shape and dtype of each value in the node's `meta`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._C import Tensor
from ..._formats import channels_last, channels_last_3d, contiguous_format
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a node's `meta["tensor_meta"]` says about its value."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (contiguous_format, channels_last, channels_last_3d)


def _describe(tensor):
    lies_in = next((f for f in _FORMATS if tensor.is_contiguous(memory_format=f)), None)
    return TensorMetadata(tensor.shape, tensor.dtype, tensor.requires_grad, tensor.stride(), lies_in, False, {})


class ShapeProp(Interpreter):
    """An interpreter that notes `tensor_meta` and `type` of every node."""

    def run_node(self, n: Node) -> Any:
        """The value of a node, after noting what it is."""
        result = super().run_node(n)
        found: list[Tensor] = []

        def describe(value):
            if not isinstance(value, Tensor):
                return value
            found.append(value)
            return _describe(value)

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph with these arguments; returns its result."""
        return super().run(*args)
