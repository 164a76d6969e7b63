"""Conversion of an observed graph: quantised modules and ops take the places of float ones.

First each observer becomes a pair of `quantize_per_tensor` and `dequantize`. Then a node whose inputs are dequantised and whose result is quantised
becomes a quantised one, and the pairs around it go.
"""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ..observer import _is_activation_post_process
from ..quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_embedding_static_quant_module_mappings,
)
from ..quantize import swap_module
from ..utils import activation_is_statically_quantized
from ._ops import NORMS, binary, inputs_of, is_relu, is_size, kind_of
from .fuse import _put, renewed
from .prepare import _scope

__all__ = ["convert"]


class _Converter:
    def __init__(self, model):
        self.model, self.graph = model, model.graph
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.qconfigs = model.meta["_observed_graph_module_attrs"]["node_name_to_qconfig"]
        self.qparams = {}  # the node that quantises -> (observer, scale node, zero point node)

    # --- observers -> pairs ----------------------------------------------------------------------------------
    def _attribute(self, prefix, value):
        index = 0
        while hasattr(self.model, f"{prefix}{index}"):
            index += 1
        name = f"{prefix}{index}"
        self.model.register_buffer(name, value)
        return self.graph.get_attr(name)

    def _prefix(self, observer):
        """What the names of parameters begin with: the path of the observed module, or of the first that takes an input."""
        source = observer.args[0]
        given = self.qconfigs.get(source.name) is None
        named = next(iter(observer.users), source) if given else source
        path = named.target if named.op == "call_module" else _scope(named)
        return path.replace(".", "_") + ("_input" if given else "")

    def pairs(self):
        """Puts a pair in the place of each observer; dynamic ones go."""
        for node in list(self.graph.nodes):
            if node.op != "call_module" or not _is_activation_post_process(self.modules[node.target]):
                continue
            made, source = self.modules[node.target], node.args[0]
            if getattr(made, "is_dynamic", False) or made.dtype not in (torch.quint8, torch.qint8, torch.qint32):
                node.replace_all_uses_with(source)
                self.graph.erase_node(node)
                continue
            scale, zero_point = made.calculate_qparams()
            prefix = self._prefix(node)
            with self.graph.inserting_before(node):
                names = [
                    self._attribute(f"{prefix}_{name}_", value.reshape(()).detach().clone())
                    for name, value in (("scale", scale.float()), ("zero_point", zero_point.to(torch.int)))
                ]
                quantised = self.graph.call_function(torch.quantize_per_tensor, (source, *names, made.dtype))
                dequantised = self.graph.call_method("dequantize", (quantised,))
            self.qparams[quantised] = (made, *names)
            node.replace_all_uses_with(dequantised)
            self.graph.erase_node(node)

    # --- lowering ----------------------------------------------------------------------------------------------
    def _is_pair(self, node):
        return (
            getattr(node, "op", None) == "call_method" and node.target == "dequantize" and node.args[0] in self.qparams
        )

    def _quantiser(self, node):
        """The node that quantises the result of a node, if it is its only use."""
        users = list(node.users)
        return users[0] if len(users) == 1 and users[0] in self.qparams else None

    def lower(self, node):
        """Makes a node a quantised one, if all around it is."""
        if is_size(node) and node.args and self._is_pair(node.args[0]):
            node.replace_input_with(node.args[0], self._integers(node.args[0]))
            return
        kind = kind_of(node, self.modules)
        if kind in (None, "embedding", "dynamic"):
            return
        inputs = inputs_of(node, kind)
        if not inputs or not all(self._is_pair(n) for n in inputs):
            return
        last, relu = node, False
        users = list(node.users)
        if kind in ("add", "mul") and len(users) == 1 and is_relu(users[0], self.modules):
            last, relu = users[0], True
        quantiser = self._quantiser(last)
        if quantiser is None:
            return
        made, scale, zero_point = self.qparams[quantiser]
        if kind == "swap" and not self._swap(node, made):
            return
        sources = {n: self._integers(n) for n in inputs}
        for pair, source in sources.items():
            node.replace_input_with(pair, source)
        result = node
        if kind in ("add", "mul", "op"):
            result = self._op(node, kind, relu, scale, zero_point, quantiser)
        quantiser.replace_all_uses_with(result)
        self.graph.erase_node(quantiser)
        self.qparams[result] = (made, scale, zero_point)
        if last is not node:
            self.graph.erase_node(last)
        if result is not node:
            self.graph.erase_node(node)

    def _integers(self, pair):
        return pair.args[0]

    def _op(self, node, kind, relu, scale, zero_point, before):
        with self.graph.inserting_before(before):
            if kind == "op":
                args = (*node.args, scale, zero_point)
                name = NORMS[node.target]
                if name == "leaky_relu":
                    slope = node.args[1] if len(node.args) > 1 else node.kwargs.get("negative_slope", 0.01)
                    args = (node.args[0], slope, False, scale, zero_point)
                elif name in ("hardswish", "elu"):
                    args = (node.args[0], scale, zero_point, *node.args[1:2])
                return self.graph.call_function(getattr(torch.ops.quantized, name), args)
            name = binary(node) + ("_relu" if relu else "")
            numbers = [n for n in node.args[:2] if not hasattr(n, "op")]
            args = node.args[:2] if numbers else (*node.args[:2], scale, zero_point)
            return self.graph.call_function(getattr(torch.ops.quantized, name), tuple(args))

    def _swap(self, node, made):
        module = self.modules[node.target]
        module.activation_post_process = made
        table = get_embedding_static_quant_module_mappings()
        quantised = swap_module(module, table, {})
        if quantised is module:
            return False
        _put(self.model, node.target, quantised)
        self.modules[node.target] = quantised
        return True

    def weights(self):
        """Replaces modules whose inputs are not quantised: those of dynamic quantisation, and embeddings."""
        tables = get_default_dynamic_quant_module_mappings()
        static = get_embedding_static_quant_module_mappings()
        for node in list(self.graph.nodes):
            if node.op != "call_module":
                continue
            module = self.modules[node.target]
            qconfig, kind = getattr(module, "qconfig", None), kind_of(node, self.modules)
            if qconfig is None or kind is None:
                continue
            if kind == "embedding":
                table = static
            elif kind in ("swap", "dynamic") and not activation_is_statically_quantized(qconfig):
                if not getattr(qconfig.activation(), "is_dynamic", False):
                    continue
                table = tables
            else:
                continue
            made = swap_module(module, table, {})
            _put(self.model, node.target, made)
            self.modules[node.target] = made

    def run(self):
        """The graph module of the converted graph."""
        self.pairs()
        for node in list(self.graph.nodes):
            if node in self.graph.nodes:
                self.lower(node)
        self.weights()
        return self._clean()

    def _clean(self):
        """Removes what nobody uses: pairs, parameters of quantisation, observers and configurations."""
        for node in list(self.graph.nodes):
            # A quantised tensor that is quantised again with its own parameters.
            if self._is_pair(node) and not node.users:
                self.graph.erase_node(node)
        self.graph.eliminate_dead_code()
        self.model = renewed(self.model)
        used = {n.target for n in self.graph.nodes if n.op == "get_attr"}
        for name in [n for n in self.model._buffers if ("scale_" in n or "zero_point_" in n) and n not in used]:
            delattr(self.model, name)
        for module in self.model.modules():
            if hasattr(module, "qconfig"):
                del module.qconfig
        return self.model


def convert(model: Any) -> Any:
    """The quantised graph module of an observed one."""
    made = _Converter(model).run()
    made.meta.pop("_observed_graph_module_attrs", None)
    return made


def __dir__() -> list[str]:
    return __all__
