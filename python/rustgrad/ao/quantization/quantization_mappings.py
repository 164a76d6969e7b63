"""Which quantised class takes the place of a float one, and which ops of which functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import rustgrad as torch

from ... import nn
from ...nn import functional as F
from ...nn.modules.linear import NonDynamicallyQuantizableLinear
from ..nn import intrinsic as nni
from ..nn import qat as nnqat
from ..nn import quantizable as nnqa
from ..nn import quantized as nnq
from ..nn.intrinsic import qat as nniqat
from ..nn.intrinsic import quantized as nniq
from ..nn.intrinsic.quantized import dynamic as nniqd
from ..nn.qat import dynamic as nnqatd
from ..nn.quantized import dynamic as nnqd
from ..nn.quantized import reference as nnqr
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub
from .utils import get_combined_dict

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings",
    "get_default_dynamic_sparse_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings",
    "get_default_static_sparse_quant_module_mappings",
    "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_quantized_operator",
    "get_static_quant_module_class",
    "no_observer_set",
]


def _alike(names, source, target):
    """Classes of one name in two namespaces."""
    return {getattr(source, name): getattr(target, name) for name in names.split()}


DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    **_alike(
        "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag",
        nn,
        nnqr,
    ),
}
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    **_alike(
        "BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d ELU Embedding "
        "EmbeddingBag GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU",
        nn,
        nnq,
    ),
    NonDynamicallyQuantizableLinear: nnq.Linear,
    **_alike("Linear ReLU6 PReLU", nn, nnq),
    nnq.FloatFunctional: nnq.QFunctional,
    **_alike(
        "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU LinearLeakyReLU LinearTanh",
        nni,
        nniq,
    ),
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    nniqat.ConvReLU2d: nniq.ConvReLU2d,
    nniqat.ConvReLU3d: nniq.ConvReLU3d,
    nniqat.LinearReLU: nniq.LinearReLU,
    nniqat.LinearBn1d: nnq.Linear,
    **_alike("Linear Conv2d Conv3d", nnqat, nnq),
}
DEFAULT_QAT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    **_alike("Conv2d Conv3d Linear", nn, nnqat),
    NonDynamicallyQuantizableLinear: nnqat.Linear,
    **_alike(
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d ConvReLU3d LinearReLU LinearBn1d",
        nni,
        nniqat,
    ),
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Callable[..., Any], Any] = {
    nn.GRUCell: nnqd.GRUCell,
    nn.Linear: nnqd.Linear,
    nnqatd.Linear: nnqd.Linear,
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    **_alike("LSTM GRU LSTMCell RNNCell", nn, nnqd),
    nni.LinearReLU: nniqd.LinearReLU,
    nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.Embedding: nnq.Embedding,
}
_INCLUDE_QCONFIG_PROPAGATE_LIST: set[Callable[..., Any]] = {nn.Sequential}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Any, Any] = {
    getattr(F, name): getattr(torch.ops.quantized, name)
    for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
}
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Callable[..., Any], Any] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def no_observer_set() -> set[Any]:
    """The classes that get no observer of their results: they have their own inside."""
    return {nnqa.LSTM, nnqa.MultiheadAttention}


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """float class -> class of static quantisation."""
    return copy.copy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> dict[Any, Any]:
    """float class -> class that computes with dequantised weights."""
    return copy.copy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Any, Any]:
    """float or trained class -> class of static quantisation, with embeddings."""
    mapping = get_default_static_quant_module_mappings()
    mapping[nnqat.EmbeddingBag], mapping[nnqat.Embedding] = nnq.EmbeddingBag, nnq.Embedding
    return mapping


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """float class -> class that is trained, with embeddings."""
    mapping = get_default_qat_module_mappings()
    mapping[nn.EmbeddingBag], mapping[nn.Embedding] = nnqat.EmbeddingBag, nnqat.Embedding
    return mapping


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """float class -> class that is trained with rounding."""
    return copy.copy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """float class -> class of dynamic quantisation."""
    return copy.copy(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_static_sparse_quant_module_mappings() -> dict[Any, Any]:
    """Nothing: there are no sparse quantised layers."""
    return {}


def get_default_dynamic_sparse_quant_module_mappings() -> dict[Any, Any]:
    """Nothing: there are no sparse quantised layers."""
    return {}


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: dict[Any, Any] | None = None, is_reference: bool = False
) -> Any:
    """The class of static quantisation of a float one. AssertionError: there is none."""
    table = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    found = get_combined_dict(table, additional_static_quant_mapping or {}).get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return copy.deepcopy(found)


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: dict[Any, Any] | None = None
) -> Any:
    """The class of dynamic quantisation of a float one. AssertionError: there is none."""
    every = get_combined_dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping or {})
    found = every.get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return copy.deepcopy(found)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The classes of modules that get a configuration."""
    tables = (DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
    return set().union(*tables, _INCLUDE_QCONFIG_PROPAGATE_LIST)


def get_default_compare_output_module_list() -> set[Any]:
    """The classes of modules whose results are compared with those of float ones."""
    tables = (DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
    found = set().union(*(table.values() for table in tables), *tables)
    return found | _INCLUDE_QCONFIG_PROPAGATE_LIST


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Any]:
    """function -> op of `ops.quantized`."""
    return copy.deepcopy(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Any) -> Any:
    """The op of `ops.quantized` of a function. AssertionError: there is none."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module: Any) -> Any:
    """The constructor of the observer of a module whose results have a known range."""
    from .fuse_modules import _class_of

    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(_class_of(module))


def _has_special_act_post_process(module: Any) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS


def __dir__() -> list[str]:
    return __all__
