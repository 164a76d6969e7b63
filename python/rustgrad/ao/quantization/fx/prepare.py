"""Observers in a graph: before and after each node that is quantised."""

from __future__ import annotations

from typing import Any

from ...nn import intrinsic as nni
from ..fuse_modules import _class_of
from ..observer import PlaceholderObserver, ReuseInputObserver, _is_activation_post_process
from ..qconfig_mapping import QConfigMapping
from ..quantization_mappings import get_default_qat_module_mappings, get_embedding_qat_module_mappings
from ..quantize import swap_module
from ..utils import activation_is_statically_quantized
from ._ops import DYNAMIC, binary, inputs_of, is_relu, kind_of, qconfig_for
from .fuse import _put, renewed

__all__ = ["prepare"]


class _Preparer:
    def __init__(self, model, mapping, is_qat):
        self.model, self.graph, self.mapping, self.is_qat = model, model.graph, mapping, is_qat
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.count = 0
        self.observed = {}  # node -> the node of its observer
        self.qconfigs = {}

    def configure(self):
        """Gives each node and module its configuration."""
        counts: dict[Any, int] = {}
        for node in self.graph.nodes:
            if node.op not in ("call_module", "call_function", "call_method"):
                continue
            module = self.modules.get(node.target) if node.op == "call_module" else None
            kind = None if module is None else _class_of(module)
            plain = kind
            if isinstance(module, nni._FusedModule) and "0" in module._modules:
                plain = _class_of(module[0])
            path = node.target if module is not None else _scope(node)
            qconfig = qconfig_for(self.mapping, node, plain, path, counts)
            if kind is not plain and kind in self.mapping.object_type_qconfigs:
                qconfig = self.mapping.object_type_qconfigs[kind]
            self.qconfigs[node] = qconfig
            if module is not None:
                for part in module.modules():
                    part.qconfig = qconfig

    def swap_for_training(self):
        """Puts layers with rounded weights in the places of float ones."""
        table = {**get_default_qat_module_mappings(), **get_embedding_qat_module_mappings()}
        for node in self.graph.nodes:
            if node.op == "call_module" and self.qconfigs.get(node) is not None:
                module = self.modules[node.target]
                if _class_of(module) in table:
                    made = swap_module(module, table, {})
                    made.qconfig = self.qconfigs[node]
                    _put(self.model, node.target, made)
                    self.modules[node.target] = made

    def add_observer(self, node, made):
        """Puts an observer after a node; all its uses become those of the observer."""
        name = f"activation_post_process_{self.count}"
        self.count += 1
        setattr(self.model, name, made)
        self.modules[name] = made
        users = list(node.users)
        with self.graph.inserting_after(node):
            observer = self.graph.call_module(name, (node,))
        for user in users:
            user.replace_input_with(node, observer)
        self.observed[node] = self.observed[observer] = observer
        return observer

    def is_static(self, qconfig):
        """Whether a configuration has a scale for activations that is found before."""
        return qconfig is not None and activation_is_statically_quantized(qconfig)

    def observe(self, node, kind, after):
        """Observes the inputs of a node, and the result of `after`."""
        qconfig = self.qconfigs.get(node)
        if qconfig is None or kind == "embedding":
            return
        inputs = inputs_of(node, kind)
        activation = qconfig.activation()
        if not self.is_static(qconfig):
            known = node.op == "call_module" and type(self.modules[node.target]) in DYNAMIC
            if known and getattr(activation, "is_dynamic", False):
                self._observe_dynamic(node, inputs, qconfig)
            return
        if kind == "dynamic" or not inputs:
            return
        reuse = isinstance(activation, ReuseInputObserver)
        if kind in ("shared", "fixed", "op") and not all(
            n in self.observed or kind != "shared" or not reuse for n in inputs
        ):
            return
        for source in inputs:
            if source not in self.observed:
                made = self._input_observer(source, qconfig, kind)
                if made is None:
                    return
                self.add_observer(source, made)
        inputs = inputs_of(node, kind)
        first = self.modules[inputs[0].target] if inputs[0].op == "call_module" else None
        if kind in ("shared", "cat"):
            for source in inputs:
                if source.op == "call_module" and _is_activation_post_process(self.modules[source.target]):
                    self._share(source.target, first)
            self.add_observer(after, first)
            return
        self.add_observer(after, qconfig.activation())

    def _share(self, name, made):
        setattr(self.model, name, made)
        self.modules[name] = made

    def _input_observer(self, source, qconfig, kind):
        """The observer of an input that has none; none where only results of a known range are configured."""
        made = qconfig.activation()
        if isinstance(made, ReuseInputObserver):
            return None
        if kind == "fixed":
            glob = self.mapping.global_qconfig
            return None if not self.is_static(glob) else glob.activation()
        return made

    def _observe_dynamic(self, node, inputs, qconfig):
        for source in inputs[:1]:
            made = qconfig.activation()
            if isinstance(made, PlaceholderObserver) or getattr(made, "is_dynamic", False):
                name = f"activation_post_process_{self.count}"
                self.count += 1
                setattr(self.model, name, made)
                self.modules[name] = made
                with self.graph.inserting_before(node):
                    observer = self.graph.call_module(name, (source,))
                node.replace_input_with(source, observer)

    def run(self):
        """Adds all observers."""
        self.configure()
        if self.is_qat:
            self.swap_for_training()
        for node in list(self.graph.nodes):
            kind = kind_of(node, self.modules) if node in self.qconfigs else None
            if kind is None or node in self.observed:
                continue
            after = node
            users = list(node.users)
            fused = binary(node) and len(users) == 1 and is_relu(users[0], self.modules)
            if fused and self.is_static(self.qconfigs[node]):
                after = users[0]
                self.observed[after] = after  # no observer of its own
            if is_relu(node, self.modules) and inputs_of(node, kind) and binary(inputs_of(node, kind)[0]):
                continue
            self.observe(node, kind, after)


def _scope(node):
    """The path of the module in which a node was recorded."""
    stack = node.meta.get("nn_module_stack") or {}
    last = list(stack.values())[-1:] if stack else []
    return (last[0][0] if isinstance(last[0], tuple) else list(stack)[-1]) if last else ""


def prepare(model: Any, mapping: Any, is_qat: bool) -> Any:
    """A graph module with observers, by the configurations of a mapping."""
    mapping = QConfigMapping.from_dict(mapping) if isinstance(mapping, dict) else mapping
    preparer = _Preparer(model, mapping, is_qat)
    preparer.run()
    qconfigs = {node.name: qconfig for node, qconfig in preparer.qconfigs.items()}
    made = renewed(model)
    made.meta["_observed_graph_module_attrs"] = {"node_name_to_qconfig": qconfigs, "is_qat": is_qat}
    return made


def __dir__() -> list[str]:
    return __all__
