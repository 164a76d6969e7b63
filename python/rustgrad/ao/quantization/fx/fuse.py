"""Fusion of modules that follow each other in a graph."""

from __future__ import annotations

from typing import Any

from .... import nn
from ....fx import GraphModule
from ..fuse_modules import _class_of
from ..fuser_method_mappings import _DEFAULT_OP_LIST_TO_FUSER_METHOD, get_fuser_method
from ._ops import is_relu

__all__ = ["fuse"]


def _module_before(node, modules):
    """The node of the module whose only use a node is, or None."""
    before = node.args[0] if node.args else None
    alone = getattr(before, "op", None) == "call_module" and len(before.users) == 1
    return before if alone and before.target in modules else None


def _chain(node, modules):
    """The nodes of the longest sequence of modules with a rule that ends with a node, the first one first."""
    relu = is_relu(node, modules)
    kinds = [nn.ReLU if relu else _class_of(modules[node.target])]
    nodes, found = [node], None
    while len(nodes) < 3:
        before = _module_before(nodes[0], modules)
        if before is None:
            break
        nodes, kinds = [before, *nodes], [_class_of(modules[before.target]), *kinds]
        if tuple(kinds) in _DEFAULT_OP_LIST_TO_FUSER_METHOD:
            found = list(nodes), tuple(kinds)
    return found


def fuse(model: Any, is_qat: bool, additional: Any = None) -> Any:
    """A graph module whose known sequences are one module, in the place of the first.

    Args:
        is_qat (bool): for training: batch norm stays a part of the fused module.
        additional (dict): more rules: classes -> function.
    """
    modules = dict(model.named_modules(remove_duplicate=False))
    graph, done = model.graph, {}
    for node in reversed(list(graph.nodes)):
        if node not in list(graph.nodes) or not (
            is_relu(node, modules) or (node.op == "call_module" and node.target in modules)
        ):
            continue
        before = _module_before(node, modules)
        if before is not None and done.get(before.target) == node.target:
            # Modules that were fused where they were used before.
            node.replace_all_uses_with(before)
            graph.erase_node(node)
            continue
        found = _chain(node, modules)
        if found is None:
            continue
        nodes, kinds = found
        parts = [modules[n.target] if n.op == "call_module" else nn.ReLU() for n in nodes]
        if len({part.training for part in parts}) > 1:
            parts[-1].train(parts[0].training)
        try:
            fused = get_fuser_method(kinds, additional)(is_qat, *parts)
        except NotImplementedError:
            continue
        qconfig = getattr(parts[0], "qconfig", None)
        if qconfig is not None:
            fused.qconfig = qconfig
        _put(model, nodes[0].target, fused)
        modules[nodes[0].target] = fused
        done[nodes[0].target] = node.target
        node.replace_all_uses_with(nodes[0])
        for gone in reversed(nodes[1:]):
            graph.erase_node(gone)
    return renewed(model)


def renewed(model):
    """A graph module with the submodules that its graph names, in that order."""
    made = GraphModule(model, model.graph)
    made.training = model.training
    return made


def _put(model, path, module):
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent) if parent else model, name, module)


def __dir__() -> list[str]:
    return __all__
