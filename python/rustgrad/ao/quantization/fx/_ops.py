"""Which nodes of a graph are quantised, and how: by modules, by ops of `ops.quantized`, or by the same op on integers."""

from __future__ import annotations

import operator
import re

import rustgrad as torch

from .... import nn
from ....nn import functional as F
from ...nn import intrinsic as nni
from ...nn import qat as nnqat
from ...nn.intrinsic import qat as nniqat
from ..quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_QAT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
)
from ..stubs import DeQuantStub, QuantStub

__all__: list[str] = []

# Modules that another class takes the place of.
SWAPPED = tuple(
    kind
    for kind in {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS}
    if isinstance(kind, type) and kind not in (QuantStub, DeQuantStub, nn.Dropout, nn.ReLU6)
)
EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag, nnqat.Embedding, nnqat.EmbeddingBag)
DYNAMIC = tuple(kind for kind in DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS if isinstance(kind, type))
WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nni._FusedModule, nniqat.ConvBn2d)
# Modules and functions whose results have the scale of their input.
SHARED_MODULES = (
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.AdaptiveAvgPool3d, nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d,
    nn.Flatten, nn.Upsample, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle,
)  # fmt: skip
SHARED_FUNCTIONS = {
    F.max_pool1d, F.max_pool2d, F.max_pool3d, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool1d,
    F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.relu, F.relu6, F.hardtanh, F.dropout, F.interpolate, torch.relu, torch.clamp,
    torch.flatten, torch.mean, torch.max_pool1d, torch.max_pool2d, torch.transpose, torch.permute, torch.squeeze, torch.unsqueeze,
    torch.repeat_interleave, torch.stack, torch.narrow, torch.reshape,
}  # fmt: skip
SHARED_METHODS = set(
    "clamp contiguous detach flatten mean permute relu relu_ repeat repeat_interleave reshape resize_ squeeze squeeze_ transpose "
    "unsqueeze unsqueeze_ view clone".split()
)
FIXED_MODULES = (nn.Sigmoid, nn.Tanh, nn.Hardsigmoid, nn.Softmax)
FIXED_FUNCTIONS = {torch.sigmoid, torch.tanh, F.sigmoid, F.tanh, F.hardsigmoid}
FIXED_METHODS = {"sigmoid", "sigmoid_", "tanh", "tanh_"}
ADDS, MULS = {operator.add, torch.add, operator.iadd}, {operator.mul, torch.mul, operator.imul}
BINARY_METHODS = {"add": "add", "add_": "add", "mul": "mul", "mul_": "mul"}
CATS = {torch.cat, torch.concat}
NORMS = {
    F.layer_norm: "layer_norm",
    F.instance_norm: "instance_norm",
    F.hardswish: "hardswish",
    F.elu: "elu",
    F.leaky_relu: "leaky_relu",
}
RELUS = {F.relu, torch.relu}


def is_size(node):
    """Whether a node gives sizes or other numbers about a tensor, which need no elements of it."""
    if not hasattr(node, "op"):
        return not isinstance(node, (list, tuple))
    if node.op == "call_method":
        return node.target in ("size", "dim", "numel", "ndimension")
    if node.op != "call_function":
        return False
    if node.target is getattr:
        return node.args[1] in ("shape", "ndim", "device", "dtype", "is_quantized")
    numbers = {operator.getitem, operator.add, operator.mul, operator.sub, operator.floordiv, operator.truediv}
    first = node.args[0] if node.args else None
    return node.target in numbers and hasattr(first, "op") and is_size(first)


def is_relu(node, modules):
    """Whether a node is relu: a module, a function or a method."""
    if node.op == "call_module":
        return type(modules.get(node.target)) is nn.ReLU
    return (node.op == "call_function" and node.target in RELUS) or (
        node.op == "call_method" and node.target in ("relu", "relu_")
    )


def binary(node):
    """ "add" or "mul" of a node that is one, else None."""
    if node.op == "call_function":
        return "add" if node.target in ADDS else "mul" if node.target in MULS else None
    return BINARY_METHODS.get(node.target) if node.op == "call_method" else None


def kind_of(node, modules):
    """How a node is quantised: "swap", "embedding", "shared", "fixed", "add", "mul", "cat", "op"; None where it is not."""
    if node.op == "call_module":
        module = modules.get(node.target)
        if type(module) in EMBEDDINGS:
            return "embedding"
        if type(module) in SWAPPED:
            return "swap"
        if type(module) in SHARED_MODULES:
            return "shared"
        if type(module) in FIXED_MODULES:
            return "fixed"
        return "dynamic" if type(module) in DYNAMIC else None
    if is_size(node):
        return None
    found = binary(node)
    if found:
        return found
    if node.op == "call_function":
        if node.target in CATS:
            return "cat"
        if node.target in NORMS:
            return "op"
        return "shared" if node.target in SHARED_FUNCTIONS else "fixed" if node.target in FIXED_FUNCTIONS else None
    if node.op == "call_method":
        return "shared" if node.target in SHARED_METHODS else "fixed" if node.target in FIXED_METHODS else None
    return None


def inputs_of(node, kind):
    """The nodes of the tensors that a quantised node computes with."""
    if kind == "cat":
        return [n for n in node.args[0] if hasattr(n, "op")] if node.args else []
    if kind in ("add", "mul"):
        return [n for n in node.args[:2] if hasattr(n, "op")]
    if not node.args:
        return []
    first = node.args[0]
    return [n for n in (first if isinstance(first, (tuple, list)) else (first,)) if hasattr(n, "op")]


def qconfig_for(mapping, node, module_type, path, counts):
    """The configuration of a node by a `QConfigMapping`; `counts`: how often a type was used in a module before."""
    found = mapping.global_qconfig
    target = module_type if module_type is not None else node.target
    found = mapping.object_type_qconfigs.get(target, found)
    for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
        if re.match(pattern, path):
            found = qconfig
            break
    name = path
    while name:
        if name in mapping.module_name_qconfigs:
            found = mapping.module_name_qconfigs[name]
            break
        name = name.rpartition(".")[0]
    parent = path.rpartition(".")[0] if module_type is not None else path
    for (where, kind, index), qconfig in mapping.module_name_object_type_order_qconfigs.items():
        if where == parent and kind == target and counts.get((parent, target), 0) == index:
            found = qconfig
    counts[parent, target] = counts.get((parent, target), 0) + 1
    return found


def __dir__() -> list[str]:
    return __all__
