"""`FxGraphDrawer`: a graph as a picture of Graphviz, by way of the package pydot."""

from __future__ import annotations

import hashlib
from typing import Any

from ..._base import Tensor
from ...nn.modules.module import Module
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

_COLORS = {"placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_param": "Yellow2", "get_attr": "LightGrey",
           "output": "PowderBlue"}  # fmt: skip
_OF_TARGETS = ("CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1", "LavenderBlush1", "LightSkyBlue",
               "MistyRose1", "MediumPurple1", "PaleTurquoise2", "PeachPuff1", "Salmon1", "Thistle1", "Bisque1", "PaleGreen2")  # fmt: skip


class FxGraphDrawer:
    """Draws a graph, and the graphs of the submodules that it calls.

    Args:
        graph_module (GraphModule): the graph; shapes are shown where `ShapeProp` has noted them.
        name (str): the name of the picture.
        ignore_getattr (bool): leave reads of attributes out.
        ignore_parameters_and_buffers (bool): leave the parameters and buffers of modules out.
        skip_node_names_in_args (bool): nodes in arguments are shown as `%name`, or left out.
        parse_stack_trace (bool): show the line that a node comes from.
        dot_graph_shape (str): the shape of nodes. Default: "record".
        normalize_args (bool): show all arguments by name.

    Raises:
        RuntimeError: pydot is not installed.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        try:
            import pydot
        except ImportError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite Python package manager."
            ) from None
        self._pydot, self._name = pydot, name
        self.dot_graph_shape = dot_graph_shape or "record"
        self.normalize_args, self._skip, self._trace = normalize_args, skip_node_names_in_args, parse_stack_trace
        self._without = (ignore_getattr, ignore_parameters_and_buffers)
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for node in graph_module.graph.nodes:
            inner = graph_module.get_submodule(node.target) if node.op == "call_module" else None
            if isinstance(inner, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._drawn(inner, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The picture as an object of pydot, which writes files: `get_dot_graph().write_svg("a.svg")`."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The picture of the graph."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The picture of a submodule's graph."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All pictures by their names."""
        return self._dot_graphs

    # --- nodes
    def _style(self, node: Node) -> dict[str, str]:
        color = _COLORS.get(node.op)
        if color is None:
            name = node._pretty_target()
            color = _OF_TARGETS[
                int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8], 16) % len(_OF_TARGETS)
            ]
        return {"shape": self.dot_graph_shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}

    def _typed(self, target: Any) -> str:
        return _get_qualified_name(target) if callable(target) else str(target)

    def _label(self, module: Module, node: Node) -> str:
        rows = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            inner = module.get_submodule(node.target)
            rows[-1] += f"\\n{type(inner).__module__}.{type(inner).__name__}"
            constants = [f"{c}: {getattr(inner, c)}" for c in getattr(inner, "__constants__", ())]
            rows += [r"\n".join(constants)] if constants else []
        else:
            rows.append(f"target={self._escaped(self._typed(node.target))}")
            args, kwargs = node.args, node.kwargs
            if self.normalize_args and (normal := node.normalized_arguments(module)) is not None:
                args, kwargs = normal
            rows += [f"args={self._shown(args)}"] if len(args) else []
            rows += [f"kwargs={self._shown(dict(kwargs))}"] if len(kwargs) else []
            rows.append(f"num_users={len(node.users)}")
        meta = node.meta.get("tensor_meta")
        label = "{" + "|".join(rows) + (f"|{self._meta(meta)}" if meta is not None else "")
        if self._trace and node.stack_trace:
            label += f"|{self._escaped(node.stack_trace.strip().splitlines()[-1].strip())}"
        return label + "}"

    def _shown(self, value: Any) -> str:
        def text(v: Any) -> str:
            if isinstance(v, Node):
                return f"%{v.name}" if not self._skip else ""
            if isinstance(v, (list, tuple)):
                inner = ", ".join(filter(None, map(text, v)))
                return f"[{inner}]" if isinstance(v, list) else f"({inner},)"
            if isinstance(v, dict):
                return "{" + ", ".join(f"{k}: {text(w)}" for k, w in v.items()) + "}"
            return self._typed(v) if callable(v) else str(v)

        return self._escaped(text(value))

    @staticmethod
    def _escaped(text: str) -> str:
        for sign in "{}<>[]|":
            text = text.replace(sign, "\\" + sign)
        return text[:300].replace('"', "'")

    def _meta(self, meta: Any) -> str:
        if isinstance(meta, TensorMetadata):
            return (
                self._escaped(f"dtype={meta.dtype}")
                + rf"\nshape={tuple(meta.shape)}\nrequires_grad={meta.requires_grad}"
            )
        if isinstance(meta, dict):
            return r"\n".join(f"{k}: {self._meta(v)}" for k, v in meta.items())
        return r"\n".join(map(self._meta, meta)) if isinstance(meta, (tuple, list)) else self._escaped(str(meta))

    def _drawn(self, module: GraphModule, name: str) -> Any:
        pydot, (no_reads, no_tensors) = self._pydot, self._without
        graph = pydot.Dot(name, rankdir="TB")
        shown = [n for n in module.graph.nodes if not (no_reads and n.op == "get_attr")]
        for node in shown:
            graph.add_node(pydot.Node(node.name, label=self._label(module, node), **self._style(node)))
            if node.op != "call_module" or no_tensors:
                continue
            inner = module.get_submodule(node.target)
            for key, tensor in (*inner.named_parameters(), *inner.named_buffers()):
                graph.add_node(self._tensor(node, key, tensor))
                graph.add_edge(pydot.Edge(f"{node.name}.{key}", node.name))
        for node in shown:
            for user in node.users:
                graph.add_edge(pydot.Edge(node.name, user.name))
        return graph

    def _tensor(self, node: Node, key: str, tensor: Tensor) -> Any:
        label = rf"{{name=%{node.name}.{key}|op_code=get_parameter|dtype={tensor.dtype}\nshape={list(tensor.shape)}}}"
        style = {"shape": self.dot_graph_shape, "fillcolor": _COLORS["get_param"], "style": '"filled,rounded"'}
        return self._pydot.Node(f"{node.name}.{key}", label=self._escaped_sizes(label), **style)

    @staticmethod
    def _escaped_sizes(text: str) -> str:
        return text.replace("[", r"\[").replace("]", r"\]")
