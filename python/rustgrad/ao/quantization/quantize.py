"""Quantisation of models by their modules: observers are put in, values seen, and modules replaced."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import rustgrad as torch

from ..._absent import getattr_of
from ...nn.modules.module import Module
from ..nn import intrinsic as nni
from ..nn import quantizable as nnqa
from ..nn import quantized as nnq
from .fuse_modules import _class_of
from .observer import _is_activation_post_process
from .qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper
from .utils import _assert_and_get_unique_device, _in_place_of, has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant",
    "convert",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

_CUSTOM: dict[str, Any] = {
    "float_to_observed_custom_module_class": {
        torch.nn.LSTM: nnqa.LSTM,
        torch.nn.MultiheadAttention: nnqa.MultiheadAttention,
    },
    "observed_to_quantized_custom_module_class": {
        nnqa.LSTM: nnq.LSTM,
        nnqa.MultiheadAttention: nnq.MultiheadAttention,
    },
}
_DEFAULT_CUSTOM_CONFIG_DICT = _CUSTOM


def get_default_custom_config_dict() -> dict[str, Any]:
    """The classes of modules that have observers inside: float -> observed, and observed -> quantised."""
    return _CUSTOM


# --- configurations ------------------------------------------------------------------------------------------------
def _propagate_qconfig_helper(
    module, qconfig_dict, qconfig_parent=None, prefix="", prepare_custom_config_dict=None
):  # fmt: skip
    found = qconfig_dict.get(_class_of(module), qconfig_parent)
    found = qconfig_dict.get(prefix, found)
    found = getattr(module, "qconfig", found)
    _assert_valid_qconfig(found, module)
    module.qconfig = _add_module_to_qconfig_obs_ctr(found, module)
    custom = prepare_custom_config_dict or {}
    for name, child in module.named_children():
        path = f"{prefix}.{name}" if prefix else name
        if name in custom.get("non_traceable_module_name", []) or type(child) in custom.get(
            "non_traceable_module_class", []
        ):
            continue
        _propagate_qconfig_helper(child, qconfig_dict, module.qconfig, path, prepare_custom_config_dict)


def propagate_qconfig_(module: Module, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None) -> None:
    """Gives each submodule the attribute `qconfig`: its own, that of its name or class in the dictionary, or its parent's."""
    _propagate_qconfig_helper(module, qconfig_dict or {}, prepare_custom_config_dict=prepare_custom_config_dict or {})


# --- observers -----------------------------------------------------------------------------------------------------
def _observer_forward_hook(self, input, output):
    """Lets the observer of a module see its result."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self, input):
    """Lets the observer of a module see its input."""
    return self.activation_post_process(input[0])


def _register_activation_post_process_hook(module, pre_hook=False):
    if not hasattr(module, "activation_post_process"):
        raise AssertionError("Expect activation_post_process attribute already attached to the module")
    if pre_hook:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _observed(qconfig, device, special=None):
    made = qconfig.activation() if special is None else special()
    return made if device is None else made.to(device)


def _needs_observer(module):
    return hasattr(module, "qconfig") and module.qconfig is not None


def _insert_observer(module, device, special=None):
    """Adds the observer of a module's result, unless it has a `DeQuantStub`'s place."""
    if not _needs_observer(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", _observed(module.qconfig, device, special))
    _register_activation_post_process_hook(module, pre_hook=_activation_is_memoryless(module.qconfig))


def _add_observer_(
    module, qconfig_propagation_list=None, non_leaf_module_list=None, device=None, custom_module_class_mapping=None
):  # fmt: skip
    """Adds observers to the leaf modules that have a configuration."""
    listed = get_default_qconfig_propagation_list() if qconfig_propagation_list is None else qconfig_propagation_list
    custom = custom_module_class_mapping or {}
    device = _assert_and_get_unique_device(module) if device is None else device
    for name, child in module.named_children():
        kind = _class_of(child)
        if kind is torch.nn.Dropout:
            continue
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if _needs_observer(child):
                child.activation_post_process = _observed(child.qconfig, device)
        elif isinstance(child, nni._FusedModule):
            _insert_observer(child, device)
        elif non_leaf_module_list is not None and kind in non_leaf_module_list:
            _insert_observer(child, device)
        elif _has_special_act_post_process(child):
            _insert_observer(child, device, _get_special_act_post_process(child))
        elif _needs_observer(child) and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if not issubclass(custom[kind], tuple(no_observer_set())):
                _insert_observer(observed, device)
        else:
            _add_observer_(child, listed, non_leaf_module_list, device, custom)
    leaf = has_no_children_ignoring_parametrizations(module) and not isinstance(module, torch.nn.Sequential)
    if leaf and _class_of(module) in listed:
        _insert_observer(module, device)


def _remove_activation_post_process(module):
    """Removes a module's observer and its hooks."""
    made = getattr(module, "activation_post_process", None)
    if made is not None and _is_activation_post_process(made):
        delattr(module, "activation_post_process")
    for hooks, ours in (
        (module._forward_pre_hooks, _observer_forward_pre_hook),
        (module._forward_hooks, _observer_forward_hook),
    ):
        for handle, hook in list(hooks.items()):
            if hook is ours:
                hooks.pop(handle)


def _remove_qconfig(module):
    """Removes configurations and observers of a module and its submodules."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


def prepare(
    model: Module, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """A model that observes its activations, for static quantisation: call it with examples, then `convert` it.

    Args:
        model (Module): with an attribute `qconfig`, or submodules with one.
        inplace (bool): changes the model itself.
        allow_list (collection): the classes that are quantised; default: those of `get_default_qconfig_propagation_list`.
        observer_non_leaf_module_list (list): classes that are observed though they have submodules.
        prepare_custom_config_dict (dict): "float_to_observed_custom_module_class".
    """
    custom = (prepare_custom_config_dict or get_default_custom_config_dict()).get(
        "float_to_observed_custom_module_class", {}
    )
    if not inplace:
        model = copy.deepcopy(model)
    listed = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    propagate_qconfig_(model, qconfig_dict=None)
    if not any(getattr(module, "qconfig", None) for module in model.modules()):
        import warnings

        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through `qconfig_dict` or by "
            "assigning the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    _add_observer_(model, listed, observer_non_leaf_module_list, custom_module_class_mapping=custom)
    return model


def add_quant_dequant(module: Module) -> Module:
    """A module whose leaves with a configuration are wrapped in `QuantWrapper`."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare_qat(model: Module, mapping: Any = None, inplace: bool = False) -> Module:
    """A model whose layers round as quantised ones would, to be trained and then converted.

    Args:
        model (Module): in `train` mode, with an attribute `qconfig`.
        mapping (dict): float class -> class that is trained.
        inplace (bool): changes the model itself.

    Raises:
        AssertionError: the model is in `eval` mode.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model, qconfig_dict=None)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


# --- conversion ----------------------------------------------------------------------------------------------------
def convert(
    module: Module, mapping: Any = None, inplace: bool = False, remove_qconfig: bool = True, is_reference: bool = False,
    convert_custom_config_dict: Any = None, use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """A model whose observed submodules are replaced by quantised ones.

    Args:
        mapping (dict): class -> quantised class, with `from_float`; default: that of static quantisation.
        inplace (bool): changes the model itself.
        remove_qconfig (bool): removes configurations and observers.
        is_reference (bool): layers that compute with dequantised weights.
        convert_custom_config_dict (dict): "observed_to_quantized_custom_module_class".
        use_precomputed_fake_quant (bool): weights are rounded with parameters that were found before.
    """
    if not inplace:
        module = copy.deepcopy(module)
    _convert(
        module, mapping, inplace=True, is_reference=is_reference, convert_custom_config_dict=convert_custom_config_dict,
        use_precomputed_fake_quant=use_precomputed_fake_quant,
    )  # fmt: skip
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(
    module, mapping=None, inplace=False, is_reference=False, convert_custom_config_dict=None, use_precomputed_fake_quant=False
):  # fmt: skip
    if mapping is None:
        reference = get_default_static_quant_reference_module_mappings
        mapping = reference() if is_reference else get_default_static_quant_module_mappings()
    custom_config = convert_custom_config_dict or get_default_custom_config_dict()
    custom = custom_config.get("observed_to_quantized_custom_module_class", {})
    if not inplace:
        module = copy.deepcopy(module)
    swapped = {}
    for name, child in module.named_children():
        # A fused module is replaced as a whole.
        if not isinstance(child, nni._FusedModule) and _class_of(child) not in custom:
            _convert(child, mapping, True, is_reference, convert_custom_config_dict, use_precomputed_fake_quant)
        swapped[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)
    module._modules.update(swapped)
    return module


def swap_module(
    mod: Module, mapping: Any, custom_module_class_mapping: Any, use_precomputed_fake_quant: bool = False
) -> Module:
    """The quantised module in place of one with a configuration, with its hooks; the module itself if its class has none."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = _class_of(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        made = _from_float(mapping[kind], mod, use_precomputed_fake_quant)
    else:
        return mod
    return _in_place_of(mod, made, without=_observer_forward_hook)  # type: ignore[no-any-return]


def _from_float(cls, mod, use_precomputed_fake_quant):
    if getattr(cls, "_IS_REFERENCE", False):
        from .utils import get_qparam_dict

        if mod.qconfig is None:
            raise AssertionError("module qconfig must not be None when swapping to reference module")
        observer = mod.qconfig.weight()
        observer(mod.weight)
        return cls.from_float(mod, get_qparam_dict(observer))
    takes = inspect.signature(cls.from_float).parameters
    if "use_precomputed_fake_quant" in takes:
        return cls.from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    return cls.from_float(mod)


# --- whole programs ------------------------------------------------------------------------------------------------
def quantize(model: Module, run_fn: Any, run_args: Any, mapping: Any = None, inplace: bool = False) -> Module:
    """Static quantisation: `prepare`, a call of `run_fn(model, *run_args)`, `convert`."""
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


def quantize_qat(model: Module, run_fn: Any, run_args: Any, inplace: bool = False) -> Module:
    """Training with quantisation: `prepare_qat`, a call of `run_fn(model, *run_args)`, `convert`."""
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


_RECURRENT = ("LSTM", "GRU", "LSTMCell", "RNNCell", "GRUCell")


def _dynamic_spec(dtype):
    """Class -> configuration of dynamic quantisation with weights of a dtype."""
    if dtype == torch.qint8:
        names, qconfig = ("Linear", *_RECURRENT), default_dynamic_qconfig
    elif dtype == torch.float16:
        names, qconfig = ("Linear", *_RECURRENT), float16_dynamic_qconfig
    elif dtype == torch.quint8:
        names, qconfig = ("EmbeddingBag", "Embedding"), float_qparams_weight_only_qconfig
    elif dtype == torch.quint4x2:
        names, qconfig = ("EmbeddingBag",), float_qparams_weight_only_qconfig_4bit
    else:
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    return {getattr(torch.nn, name): qconfig for name in names}


def quantize_dynamic(
    model: Module, qconfig_spec: Any = None, dtype: Any = torch.qint8, mapping: Any = None, inplace: bool = False
) -> Module:
    """A model whose weights are quantised, and whose activations are by the range of each.

    Args:
        qconfig_spec: the classes or names of submodules that are replaced: a set, or a dictionary with their
            configurations; default: `Linear` and recurrent layers.
        dtype (dtype): of the weights: `qint8`, `float16`, or `quint8` for embeddings.
        mapping (dict): class -> quantised class.
        inplace (bool): changes the model itself.

    Raises:
        ValueError: no default configuration for the dtype.
        RuntimeError: another dtype together with names alone.
    """
    if qconfig_spec is None:
        qconfig_spec = _dynamic_spec(dtype)
    elif isinstance(qconfig_spec, set):
        defaults = {
            torch.qint8: default_dynamic_qconfig,
            torch.float16: float16_dynamic_qconfig,
            torch.quint8: float_qparams_weight_only_qconfig,
            torch.quint4x2: float_qparams_weight_only_qconfig_4bit,
        }
        if dtype not in defaults:
            raise RuntimeError(f"Unknown dtype specified for quantize_dynamic: {dtype}")
        qconfig_spec = dict.fromkeys(qconfig_spec, defaults[dtype])
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    convert(model, mapping, inplace=True)
    return model


def _get_observer_dict(mod, target_dict, prefix=""):
    """Collects the observers of a model by their paths."""
    if hasattr(mod, "activation_post_process"):
        target_dict[f"{prefix}.activation_post_process" if prefix else "activation_post_process"] = (
            mod.activation_post_process
        )
    for name, child in mod.named_children():
        _get_observer_dict(child, target_dict, f"{prefix}.{name}" if prefix else name)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
