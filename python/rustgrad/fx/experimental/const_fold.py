"""What a graph computes of constants alone, computed once: `split_const_subgraphs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._base import Tensor, empty
from ...nn.modules import ParameterList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]

_OUTER = ("placeholder", "output")


class FoldedGraphModule(GraphModule):
    """A graph with attributes that another graph computes before the first call.

    Args:
        root, graph: see `GraphModule`.
        const_subgraph (Graph): takes no arguments; what it returns becomes an attribute.
        fx_const_folded_attrs_name (str): the name of the attribute.
        device_for_folded_attrs: not used; the attribute is where it was computed.
    """

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: Any = "cpu",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Computes the attribute, once; without constants there is nothing to do.

        Raises:
            AssertionError: it was computed before.
        """
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("constants are folded once")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()

        def kept(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            can_have_grad = value.is_floating_point() or value.is_complex()
            return Parameter(value.detach() if value.requires_grad else value, value.requires_grad and can_have_grad)

        made = ParameterList([kept(v) for v in found]) if isinstance(found, tuple) else kept(found)
        delattr(self, self.fx_const_folded_attrs_name)  # a parameter without elements
        setattr(self, self.fx_const_folded_attrs_name, made)


def get_unique_attr_name_in_module(mod_traced: Module, name: str) -> str:
    """`name`, with a number after it where the module has such an attribute."""
    number, made = 0, name
    while hasattr(mod_traced, made):
        number += 1
        made = f"{name}_{number}"
    return made


def _constant_nodes(gm: GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    found: set[Node] = set()
    for node in gm.graph.nodes:
        if node.op in _OUTER or node.op != "get_attr" and not set(node.all_input_nodes) <= found:
            continue
        if skip is not None and skip(node) or node.is_impure():
            continue
        found.add(node)
    return found


def split_const_subgraphs(
    module: Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: Any = "cpu",
) -> FoldedGraphModule:
    """A module whose parts that depend on no argument are computed before its first call.

    Args:
        module (Module): is traced if it is no `GraphModule`.
        skip_folding_node_fn (callable): says which nodes are not taken as constant.
        device_for_folded_attrs: see `FoldedGraphModule`.
    """
    gm = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(gm, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(gm, gm.graph)
    split = split_module(gm, module, lambda node: 0 if node in constant else 1)
    inner = split.submod_0
    call = next(n for n in split.graph.nodes if n.op == "call_module" and n.target == "submod_0")
    const_graph, made = Graph(), {}
    places = [n for n in inner.graph.nodes if n.op == "placeholder"]
    for place, used in zip(places, call.args, strict=True):
        made[place] = const_graph.get_attr(used.target)
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "call_module":
            setattr(split, node.target, getattr(inner, node.target))
        made[node] = const_graph.node_copy(node, lambda n: made[n])
    name = get_unique_attr_name_in_module(gm, "_FX_CONST_FOLDED_ATTRS")
    # `lint` and the constructor want the attribute to be there.
    setattr(split, name, Parameter(empty(0)))
    with split.graph.inserting_before(call):
        read = split.graph.get_attr(name)
    read.meta = call.meta.copy()
    call.replace_all_uses_with(read)
    split.graph.erase_node(call)
    # The part with the other nodes is put in the place of its call.
    _inline(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, const_graph, name, device_for_folded_attrs)


def _inline(gm: GraphModule, name: str) -> None:
    """Puts the nodes of a submodule in the place of its call."""
    inner = getattr(gm, name, None)
    call = next((n for n in gm.graph.nodes if n.op == "call_module" and n.target == name), None)
    if inner is None or call is None:
        return
    made = dict(zip([n for n in inner.graph.nodes if n.op == "placeholder"], call.args, strict=True))
    returned: Any = None
    with gm.graph.inserting_before(call):
        for node in inner.graph.nodes:
            if node.op == "output":
                returned = node.args[0]
            elif node.op != "placeholder":
                if node.op == "call_module":
                    setattr(gm, node.target, getattr(inner, node.target))
                made[node] = gm.graph.node_copy(node, lambda n: made[n])
    if isinstance(returned, tuple):
        for user in list(call.users):  # items of the result
            user.replace_all_uses_with(made[returned[user.args[1]]])
            gm.graph.erase_node(user)
    elif isinstance(returned, Node):
        call.replace_all_uses_with(made[returned])
    gm.graph.erase_node(call)
    delattr(gm, name)
