"""`rustgrad.fx`: the calls that a module's `forward` makes, as a graph that can be read, changed and run.

`symbolic_trace` runs `forward` with proxies in place of tensors and records what they meet; a `GraphModule` runs a graph
as Python code written from it. Control flow on values cannot be recorded, as in PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

from .._absent import absent as _absent
from . import immutable_collections as immutable_collections
from ._symbolic_trace import PH as PH
from ._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from ._symbolic_trace import Tracer as Tracer
from ._symbolic_trace import symbolic_trace as symbolic_trace
from ._symbolic_trace import wrap as wrap
from .graph import CodeGen as CodeGen
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import has_side_effect as has_side_effect
from .node import map_arg as map_arg
from .proxy import Proxy as Proxy
from .subgraph_rewriter import replace_pattern as replace_pattern

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
_SUBMODULES = ("annotate", "config", "experimental", "operator_schemas", "passes", "tensor_type", "traceback")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise _absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
