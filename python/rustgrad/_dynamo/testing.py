"""Backends that count and keep graphs, for tests."""

from __future__ import annotations

from typing import Any

from .._absent import getattr_of
from ..compiler._backends import lookup_backend

__all__ = [
    "AotEagerAndRecordGraphs",
    "CompileCounter",
    "CompileCounterWithBackend",
    "EagerAndRecordGraphs",
]


class CompileCounterWithBackend:
    """A backend that counts, and leaves the rest to another.

    Attributes:
        frame_count (int): how many graphs there were.
        op_count (int): how many calls were in them.
        graphs (list of GraphModule): the graphs.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
        self.frame_count += 1
        self.op_count += sum(n.op.startswith("call_") for n in gm.graph.nodes)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs, **kwargs)

    def clear(self) -> None:
        """Counts from zero."""
        self.frame_count, self.op_count = 0, 0
        self.graphs: list[Any] = []


class CompileCounter(CompileCounterWithBackend):
    """A backend that counts, and leaves the graph as it is."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """A backend that keeps the graphs in `graphs`, and leaves them as they are."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
        self.graphs.append(gm)
        return gm.forward


class AotEagerAndRecordGraphs:
    """A backend that keeps its graphs in `graphs`, and those of ATen ops in `fw_graphs` and `bw_graphs`."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.fw_graphs: list[Any] = []
        self.bw_graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
        from .backends.common import aot_autograd

        self.graphs.append(gm)

        def kept(graphs: list[Any]) -> Any:
            def compiler(graph: Any, inputs: Any) -> Any:
                graphs.append(graph)
                return graph.forward

            return compiler

        return aot_autograd(fw_compiler=kept(self.fw_graphs), bw_compiler=kept(self.bw_graphs))(gm, example_inputs)


__getattr__ = getattr_of(__name__)
