"""`rustgrad.viz`: the graph of a computation as a picture (SVG), without the graphviz binary.

Data flows downwards and gradients upwards: leaf tensors with their names, the `AccumulateGrad` nodes that collect
their gradients, saved inputs, every `grad_fn` with the shapes of its outputs,
and the given tensor.
"""

from __future__ import annotations

import os as _os
from collections.abc import Sequence
from os import PathLike
from typing import Any

from .. import _C
from .._base import Tensor as _Tensor
from ._layout import layout as _layout_of
from ._svg import box_size as _box_size
from ._svg import render as _render

__all__ = ["Picture", "draw", "graph_of"]


class Picture(str):
    """The SVG text of a graph; a notebook shows it as the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def __dir__() -> list[str]:
    return __all__


def _shape(shape):
    return "×".join(str(s) for s in shape) if len(shape) else "scalar"


def _short_dtype(dtype):
    name = str(dtype).rpartition(".")[2]
    return "" if name == "float32" else " " + name


def _node_lines(node):
    """The shapes of a node's outputs, from the gradients it expects."""
    metadata = getattr(node, "_input_metadata", None) or ()
    shapes = [_shape(m.shape) + _short_dtype(m.dtype) for m in metadata if m is not None]
    return [" · ".join(shapes)] if len(shapes) <= 3 and shapes else shapes


def _collect(roots):
    """All nodes below the roots, and the edges (user, producer), without recursion."""
    nodes, edges, stack = {}, [], [r for r in roots if r is not None]
    while stack:
        node = stack.pop()
        if id(node) in nodes:
            continue
        nodes[id(node)] = node
        for producer, _ in node.next_functions:
            if producer is not None:
                edges.append((id(node), id(producer)))
                stack.append(producer)
    return nodes, edges


def _leaf_label(variable, names):
    name = names.get(id(variable), "tensor")
    return ("leaf", name, [_shape(variable.shape) + _short_dtype(variable.dtype)])


def _inputs(node):
    """(name, tensor) of a node's saved tensors without gradient: data, targets, masks."""
    for attribute in dir(node):
        if not attribute.startswith("_saved_"):
            continue
        try:
            value = getattr(node, attribute)
        except RuntimeError:  # backward freed them
            return
        for t in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(t, _Tensor) and t.grad_fn is None and not t.requires_grad and t.ndim:
                yield attribute.removeprefix("_saved_"), t


def graph_of(tensors: _Tensor | Sequence[_Tensor], params: Any = None) -> tuple[dict[Any, Any], list[tuple[Any, Any]]]:
    """The graph that produced the tensors, as data.

    Args:
        tensors (Tensor or sequence): results of a recorded computation.
        params (dict or iterable of (name, tensor), optional): names of leaves and inputs.

    Returns:
        (labels, edges): labels maps a key to (kind, title, lines); edges are pairs (producer, user) of keys.

    Raises:
        ValueError: no tensor has a graph.
    """
    tensors = [tensors] if isinstance(tensors, _Tensor) else list(tensors)
    if not any(t.requires_grad for t in tensors):
        raise ValueError("viz: the tensor has no graph; expected one that requires grad. Compute it outside no_grad.")
    params = list(params.items() if hasattr(params, "items") else params or ())
    names = {id(t): name for name, t in params}
    known = {(_C._storage_key(t), tuple(t.shape), t.stride(), t.storage_offset()): name for name, t in params}
    nodes, links = _collect([t.grad_fn for t in tensors])
    labels, edges = {}, []
    for key, node in nodes.items():
        title = node.name().rpartition("::")[2]
        variable = getattr(node, "variable", None)
        if variable is not None:
            labels[("leaf", key)] = _leaf_label(variable, names)
            labels[key] = ("accumulate", "AccumulateGrad", [])
            edges.append((("leaf", key), key))
        else:
            custom = type(node).__module__ == "torch.autograd.function" or hasattr(node, "_fn")
            labels[key] = ("custom" if custom else "node", title, _node_lines(node))
            for role, t in _inputs(node):
                memory = ("input", _C._storage_key(t), tuple(t.shape), t.stride(), t.storage_offset())
                name = known.get(memory[1:], role)
                labels.setdefault(memory, ("input", name, [_shape(t.shape) + _short_dtype(t.dtype)]))
                edges.append((memory, key))
    edges += [(producer, user) for user, producer in dict.fromkeys(links)]
    for i, t in enumerate(tensors):
        if t.grad_fn is None:
            labels[("leaf", id(t))] = _leaf_label(t, names)
            continue
        name = names.get(id(t), "output" if len(tensors) == 1 else f"output {i}")
        labels[("output", i)] = ("output", name, [_shape(t.shape) + _short_dtype(t.dtype)])
        edges.append((id(t.grad_fn), ("output", i)))
    return labels, edges


def draw(
    tensors: _Tensor | Sequence[_Tensor],
    params: Any = None,
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> str:
    """Draws the graph that produced the tensors.

    Args:
        tensors (Tensor or sequence): results of a recorded computation, such as a loss.
        params (dict or iterable of (name, tensor), optional): names of tensors, for instance
            `dict(model.named_parameters())`; inputs and results may be named too: `{"images": x, "loss": loss}`.
        path (str or path, optional): the output file; must end in .svg.
        title (str, optional): a heading.

    Returns:
        The SVG as a `Picture`: a string that a notebook shows.

    Raises:
        ValueError: no tensor has a graph, or `path` does not end in .svg.

    Example::

        rustgrad.viz.draw(loss, params=dict(model.named_parameters()), path="graph.svg")
    """
    if path is not None and (ending := _os.path.splitext(_os.fspath(path))[1].lower()) != ".svg":
        raise ValueError(
            f"viz.draw: cannot write {ending or 'a file without an ending'}; expected a path that ends in .svg."
        )
    labels, edges = graph_of(tensors, params)
    sizes = {key: _box_size(*label) for key, label in labels.items()}
    svg = Picture(_render(_layout_of(sizes, edges), labels, title))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg)
    return svg
