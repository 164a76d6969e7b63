"""`FakeTensorProp`: what each node of a graph gives, as tensors without elements."""

from __future__ import annotations

from typing import Any

from ..._C import Tensor
from ..._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on fake tensors; each node's result is its `meta["val"]`.

    Args:
        module (GraphModule): the graph.
        mode (FakeTensorMode): makes the fake tensors. Default: a new one.
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def _val(self, value: Any) -> Any:
        if isinstance(value, FakeTensor):
            # Another object: what later nodes write in place is not this node's.
            return value.detach()
        if isinstance(value, Tensor):
            return self._mode.from_tensor(value)
        return value if isinstance(value, (int, float, bool)) else None

    def run_node(self, n: Node) -> Any:
        """Runs a node, and notes what it gives."""
        result = super().run_node(n)
        meta = map_aggregate(result, self._val)
        if meta is not None:
            n.meta["val"] = meta
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on fake tensors like the arguments; returns its fake result."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args)
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Runs the graph on fake tensors."""
        with self._mode:
            return super().run(*args)
