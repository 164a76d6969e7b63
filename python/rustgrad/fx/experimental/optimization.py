"""Changes of a traced model that make it faster in evaluation: normalisations folded into layers, dropout left out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from ... import nn
from ..._absent import getattr_of
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .. import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]
__getattr__ = getattr_of(__name__)

_PAIRS = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a module of the last of two types on what a module of the first one gave.

    Args:
        pattern: two types; a module is of a type if that is its class, not one that it derives from.
        node: the node.
        modules: the modules of the graph by their paths.
    """
    if not node.args:
        return False
    called = (node.args[0], node)
    return all(
        isinstance(n, Node) and n.op == "call_module" and n.target in modules and type(modules[n.target]) is kind
        for kind, n in zip(pattern, called, strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Puts another module in the place of the one that a node calls.

    Raises:
        AssertionError: the node does not call a module by its path.
    """
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Folds batch normalisation into the convolution or linear layer before it, for evaluation.

    Args:
        model (Module): a model in evaluation mode.
        inplace (bool): whether layers of `model` itself are replaced.
        no_trace (bool): whether `model` is a `GraphModule` already.

    Returns:
        A `GraphModule`.

    Raises:
        AssertionError: a layer is in training mode, or the model was to be a `GraphModule` and is none.
    """
    if not inplace:
        model = copy.deepcopy(model)
    if no_trace and not isinstance(model, GraphModule):
        raise AssertionError("fuse: expected a GraphModule where no_trace=True; trace the model with fx.symbolic_trace")
    traced = model if isinstance(model, GraphModule) and no_trace else symbolic_trace(model)
    modules, graph = dict(traced.named_modules()), copy.deepcopy(traced.graph)
    for first, second, fused in _PAIRS:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules):
                continue
            layer, norm = modules[node.args[0].target], modules[node.target]
            if len(node.args[0].users) > 1 or not norm.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fused(layer, norm))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """The model as a `GraphModule` without its layers `nn.Dropout`."""
    traced = symbolic_trace(model)
    modules, graph = dict(traced.named_modules()), copy.deepcopy(traced.graph)
    for node in graph.nodes:
        if node.op == "call_module" and isinstance(modules[node.target], nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def extract_subgraph(
    orig_module: nn.Module, nodes: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node]
) -> GraphModule:
    """Some nodes of a graph as a module of its own.

    Args:
        orig_module (Module): the module whose attributes the nodes name.
        nodes: the nodes, in order.
        inputs: the nodes whose values are the arguments.
        outputs: the nodes whose values are returned, as a tuple.
    """
    graph, made = Graph(), {}
    for node in inputs:
        made[node] = graph.placeholder(node.name)
    for node in nodes:
        made[node] = graph.node_copy(node, lambda n: made[n])
    graph.output(tuple(made[node] for node in outputs))
    graph.lint()
    return GraphModule(orig_module, graph)


def __dir__() -> list[str]:
    return __all__
