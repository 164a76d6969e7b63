"""Quantisation of models by their graphs: `prepare_fx`, calls with examples, `convert_fx`."""

from __future__ import annotations

import copy
from typing import Any

from ...fx import GraphModule, Tracer
from ...nn.modules.module import Module
from ..nn.quantized import FloatFunctional, FXFloatFunctional
from .fx import convert as _convert
from .fx import fuse as _fuse
from .fx import prepare as _prepare

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


class _Tracer(Tracer):
    """Records a model; modules of some names or classes are one node."""

    def __init__(self, names: list[str], kinds: list[type]) -> None:
        super().__init__()
        self.names, self.kinds = names, tuple(kinds)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one node."""
        own = super().is_leaf_module(m, module_qualified_name)
        return own or module_qualified_name in self.names or isinstance(m, self.kinds)


def _option(config, name, default):
    if config is None:
        return default
    found = config.get(name, default) if isinstance(config, dict) else getattr(config, name, default)
    return default if found is None else found


def _traced(model, config):
    """The graph module of a model, with the attributes that are to be kept."""
    for child in model.modules():
        for name, part in child.named_children():
            if type(part) is FloatFunctional:
                setattr(child, name, FXFloatFunctional())
    if isinstance(model, GraphModule):
        traced = model
    else:
        names = _option(config, "non_traceable_module_name", _option(config, "non_traceable_module_names", []))
        kinds = _option(config, "non_traceable_module_class", _option(config, "non_traceable_module_classes", []))
        graph = _Tracer(list(names), list(kinds)).trace(model)
        traced = GraphModule(model, graph)
    for name in _option(config, "preserved_attributes", []):
        if hasattr(model, name):
            setattr(traced, name, getattr(model, name))
    return traced


def fuse_fx(model: Module, fuse_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    """The graph module of a model in `eval` mode whose known sequences of modules are fused.

    Args:
        fuse_custom_config (dict, optional): "preserved_attributes".
    """
    return _fuse.fuse(_traced(copy.deepcopy(model), fuse_custom_config), False)


def _prepared(model, mapping, config, is_qat):
    traced = _fuse.fuse(_traced(copy.deepcopy(model), config), is_qat)
    return _prepare.prepare(traced, mapping, is_qat)


def prepare_fx(
    model: Module, qconfig_mapping: Any, example_inputs: Any, prepare_custom_config: Any = None, _equalization_config: Any = None,
    backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """The graph module of a model in `eval` mode that is fused and observes what will be quantised.

    Args:
        qconfig_mapping (QConfigMapping or dict): which configuration holds for what.
        example_inputs (tuple): inputs of the model; they are not looked at.
        prepare_custom_config (dict, optional): "preserved_attributes", "non_traceable_module_name", "non_traceable_module_class".
    """
    return _prepared(model, qconfig_mapping, prepare_custom_config, False)


def prepare_qat_fx(
    model: Module,
    qconfig_mapping: Any,
    example_inputs: Any,
    prepare_custom_config: Any = None,
    backend_config: Any = None,
) -> GraphModule:
    """The graph module of a model in `train` mode that rounds as the quantised one would: see `prepare_fx`."""
    return _prepared(model, qconfig_mapping, prepare_custom_config, True)


def convert_fx(
    graph_module: GraphModule, convert_custom_config: Any = None, _remove_qconfig: bool = True, qconfig_mapping: Any = None,
    backend_config: Any = None, keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    """The quantised graph module of one that observed: its modules and ops compute with integers.

    Raises:
        AssertionError: the model was not prepared.
    """
    if not isinstance(graph_module, GraphModule) or "_observed_graph_module_attrs" not in graph_module.meta:
        raise AssertionError("convert_fx: incoming model must be produced by prepare_fx or prepare_qat_fx")
    return _convert.convert(copy.deepcopy(graph_module))


def __dir__() -> list[str]:
    return __all__
