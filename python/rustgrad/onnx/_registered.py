"""Translations that programs register for ops by name."""

from __future__ import annotations

from typing import Any

from .._C import float32
from ._graph import Graph, Val
from .errors import OnnxExporterError

__all__ = ["SymbolicGraph", "register", "registered", "unregister"]

_found: dict[str, dict[int, Any]] = {}


def _key(name: str) -> str:
    namespace, separator, leaf = name.partition("::")
    if not separator or not namespace or not leaf:
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name."
        )
    return leaf.split(".")[0]


def register(name: str, function: Any, opset: int) -> None:
    """The translation of an op from an opset on."""
    _found.setdefault(_key(name), {})[int(opset)] = function


def unregister(name: str, opset: int) -> None:
    """Forgets a translation."""
    _found.get(_key(name), {}).pop(int(opset), None)


def registered(opset: int) -> dict[str, Any]:
    """The translations for an opset, by op: the newest that is not newer."""
    found = {}
    for key, versions in _found.items():
        fitting = [v for v in versions if v <= opset]
        if fitting:
            found[key] = versions[max(fitting)]
    return found


class SymbolicGraph:
    """The graph as a registered translation sees it, in PyTorch's form.

    `g.op("Relu", x)` or `g.op("domain::Kind", x, y, alpha_f=1.0, outputs=2)` adds a node and gives its result, or a list of them. The
    last letter of an attribute's name says its kind: `_i` int, `_f` float, `_s` string; a list may stand for one of these. Values
    have `name`, `dtype` and `shape`, and `tensor` where they are constant. `g.opset` is the version.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.opset = graph, graph.opset

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Adds a node; numbers among the inputs are constants of the dtype of the first value."""
        domain, _, kind = opname.rpartition("::")
        domain = "" if domain in ("", "onnx", "ai.onnx") else domain
        first = next((v.dtype for v in raw_args if isinstance(v, Val)), float32)
        values = [v if v is None or isinstance(v, Val) else self.graph.number(v, first) for v in raw_args]
        attributes = {k[:-2] if k[-2:] in _SUFFIXES else k: v for k, v in kwargs.items()}
        kinds = [out.dtype for out in self.graph.outs[:outputs]]
        kinds += [first] * (outputs - len(kinds))
        results = self.graph.several(kind, values, kinds, domain=domain, **attributes)
        return results if outputs > 1 else results[0]


_SUFFIXES = ("_i", "_f", "_s", "_t", "_g")
