"""Attributes of layers as attributes of the nodes that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ...nn.modules.module import Module
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """The name itself."""
    return name


_CONVOLUTION = ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"]
# Class -> version, names of attributes, and how a name differs between versions.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (1, _CONVOLUTION, default_matching),
    nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod: Module) -> dict[str, Any]:
    """The attributes of a layer that describe what it computes, and its class as "name".

    Raises:
        RuntimeError: the layer's version is newer than what is known of its class.
    """
    found: dict[str, Any] = {"name": f"{type(mod).__module__.replace('rustgrad', 'torch', 1)}.{type(mod).__name__}"}
    if type(mod) in module_fetch_book:
        version, names, matching = module_fetch_book[type(mod)]
        if version < (mod._version or 0):
            raise RuntimeError(
                f"Fetcher version {version} try to fetch {type(mod)} version {mod._version}, please upgrade the module_fetch_book,"
                " which knows versions up to that."
            )
        found |= {name: getattr(mod, matching(name, mod._version or 0)) for name in names}
    return found


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Sets `attrs_for_lowering` of each node that calls a module, also in submodules that are graphs."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        if isinstance(modules[node.target], GraphModule):
            lift_lowering_attrs_to_nodes(modules[node.target])
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(modules[node.target])
