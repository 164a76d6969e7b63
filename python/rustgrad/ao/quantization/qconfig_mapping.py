"""`QConfigMapping`: configurations by class, name, or for all."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import rustgrad as torch

from ..._absent import getattr_of
from ...nn import functional as F
from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import (
    PlaceholderObserver,
    _PartialWrapper,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    default_symmetric_qnnpack_qat_qconfig,
    default_symmetric_qnnpack_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]

_GLOBAL_DICT_KEY = ""
_OBJECT_TYPE_DICT_KEY = "object_type"
_MODULE_NAME_REGEX_DICT_KEY = "module_name_regex"
_MODULE_NAME_DICT_KEY = "module_name"
_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY = "module_name_object_type_order"


def _fixed():
    """object -> observer of results with a known range."""
    table: dict[Any, Any] = {}
    for name, observer in (
        ("Hardsigmoid", default_fixed_qparams_range_0to1_observer),
        ("Sigmoid", default_fixed_qparams_range_0to1_observer),
        ("Softmax", default_fixed_qparams_range_0to1_observer),
        ("Tanh", default_fixed_qparams_range_neg1to1_observer),
    ):
        low = name.lower()
        table[getattr(torch.nn, name)] = observer
        if low == "softmax":
            continue
        for key in (F.hardsigmoid if low == "hardsigmoid" else getattr(torch, low), low, f"{low}_"):
            table[key] = observer
    return table


_FIXED_QPARAMS_OP_TO_OBSERVER: dict[Any, _PartialWrapper] = _fixed()
_TRANSPOSED = [getattr(torch.nn, f"ConvTranspose{n}d") for n in "123"]
_TRANSPOSED_FUNCTIONS = [getattr(F, f"conv_transpose{n}d") for n in "123"]


def _get_default_qconfig_mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    qconfig = (get_default_qat_qconfig if is_qat else get_default_qconfig)(backend, version)
    weight = default_weight_fake_quant if is_qat else default_weight_observer
    mapping = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    if backend in ("fbgemm", "x86", "qnnpack"):
        transposed = QConfig(activation=qconfig.activation, weight=weight)
    else:
        transposed = qconfig
    if backend in ("fbgemm", "x86"):
        for kind in (*_TRANSPOSED, *_TRANSPOSED_FUNCTIONS):
            mapping.set_object_type(kind, transposed)
    norm = QConfig(activation=qconfig.activation, weight=PlaceholderObserver)
    mapping.set_object_type(F.layer_norm, norm).set_object_type(torch.nn.LayerNorm, norm)
    mapping.set_object_type(torch.nn.PReLU, default_quint8_weight_qconfig)
    for kind, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        activation = FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer
        mapping.set_object_type(kind, QConfig(activation=activation, weight=weight))
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The configurations of static quantisation for a backend: see `get_default_qconfig`."""
    return _get_default_qconfig_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The configurations of training with quantisation for a backend: see `get_default_qat_qconfig`."""
    return _get_default_qconfig_mapping(True, backend, version)


def _get_default_qconfig_mapping_with_default_qconfig(is_qat, backend, default_qconfig):
    mapping = _get_default_qconfig_mapping(is_qat, backend, 1 if is_qat else 0)
    mapping.set_global(default_qconfig)
    for kind, kept in mapping.object_type_qconfigs.items():
        if kind not in _FIXED_QPARAMS_OP_TO_OBSERVER and kept is not default_reuse_input_qconfig:
            mapping.set_object_type(kind, default_qconfig)
    return mapping


def _get_symmetric_qnnpack_qconfig_mapping() -> QConfigMapping:
    return _get_default_qconfig_mapping_with_default_qconfig(False, "qnnpack", default_symmetric_qnnpack_qconfig)


def _get_symmetric_qnnpack_qat_qconfig_mapping() -> QConfigMapping:
    return _get_default_qconfig_mapping_with_default_qconfig(True, "qnnpack", default_symmetric_qnnpack_qat_qconfig)


_QCONFIG_STYLE_ORDER = [
    "global_qconfig",
    "object_type_qconfigs",
    "module_name_regex_qconfigs",
    "module_name_qconfigs",
    "module_name_object_type_order_qconfigs",
]


class QConfigMapping:
    """Which configuration holds for which module or op. The last kind that matches counts:

    global, class or function, regular expression of names, name, and (name, class, index).
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """The configuration of what has no other."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """The configuration of a class of modules, a function, or a method by its name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """The configuration of modules whose paths match a regular expression."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """The configuration of a module by its path."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """The configuration of the n-th use of a class or function in a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for name in _QCONFIG_STYLE_ORDER:
            lines.append(f" {name}")
            kept = getattr(self, name)
            if name == "global_qconfig":
                lines.append(f"  {kept}")
            elif kept:
                lines += [f"  {key}: {qconfig}" for key, qconfig in kept.items()]
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The older form: a dictionary with "", "object_type", "module_name_regex", "module_name"..."""
        return {
            _GLOBAL_DICT_KEY: self.global_qconfig,
            _OBJECT_TYPE_DICT_KEY: list(self.object_type_qconfigs.items()),
            _MODULE_NAME_REGEX_DICT_KEY: list(self.module_name_regex_qconfigs.items()),
            _MODULE_NAME_DICT_KEY: list(self.module_name_qconfigs.items()),
            _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY: [
                (*key, qconfig) for key, qconfig in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping of a dictionary of `to_dict`."""
        made = cls()
        if _GLOBAL_DICT_KEY in qconfig_dict:
            made.set_global(qconfig_dict[_GLOBAL_DICT_KEY])
        for key, put in (
            (_OBJECT_TYPE_DICT_KEY, made.set_object_type),
            (_MODULE_NAME_REGEX_DICT_KEY, made.set_module_name_regex),
            (_MODULE_NAME_DICT_KEY, made.set_module_name),
            (_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY, made.set_module_name_object_type_order),
        ):
            for entry in qconfig_dict.get(key, []):
                put(*entry)
        return made


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
