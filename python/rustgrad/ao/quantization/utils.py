"""What observers, configurations and passes share: ranges, parameters of ranges, and questions about configurations."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import rustgrad as torch

from ..._absent import getattr_of
from .quant_type import QuantType

__all__ = [
    "MatchAllNode",
    "activation_dtype",
    "activation_is_dynamically_quantized",
    "activation_is_int32_quantized",
    "activation_is_int8_quantized",
    "activation_is_statically_quantized",
    "calculate_qmin_qmax",
    "check_min_max_valid",
    "determine_qparams",
    "get_combined_dict",
    "get_fqn_to_example_inputs",
    "get_qconfig_dtypes",
    "get_qparam_dict",
    "get_quant_type",
    "get_swapped_custom_module_class",
    "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "to_underlying_dtype",
    "validate_qmin_qmax",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]

Pattern = NodePattern = Any
_UNDERLYING = {
    torch.quint8: torch.uint8,
    torch.qint8: torch.int8,
    torch.qint32: torch.int32,
    torch.quint4x2: torch.uint8,
    torch.quint2x4: torch.uint8,
    torch.uint8: torch.uint8,
    torch.int8: torch.int8,
    torch.uint16: torch.uint16,
    torch.int16: torch.int16,
    torch.int32: torch.int32,
    torch.float8_e5m2: torch.float8_e5m2,
    torch.float8_e4m3fn: torch.float8_e4m3fn,
}
_INT8 = (torch.quint8, torch.qint8, torch.uint8, torch.int8)
_STATIC = (*_INT8, torch.uint16, torch.int16, torch.int32, torch.float8_e5m2, torch.float8_e4m3fn)


class MatchAllNode:
    """A pattern that any node matches."""


def is_per_tensor(qscheme: Any) -> bool:
    """Whether a scheme has one scale for a tensor."""
    return qscheme in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Whether a scheme has a scale for each channel."""
    return qscheme in (
        torch.per_channel_affine,
        torch.per_channel_affine_float_qparams,
        torch.per_channel_symmetric,
    )


def to_underlying_dtype(qdtype: Any) -> Any:
    """The dtype of the integers of a quantised dtype. AssertionError: it is none."""
    if qdtype not in _UNDERLYING:
        raise AssertionError("Unsupported dtype: " + str(qdtype))
    return _UNDERLYING[qdtype]


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """The attribute at a dotted path."""
    for name in fqn.split("."):
        obj = getattr(obj, name)
    return obj


def get_combined_dict(default_dict: dict[Any, Any], additional_dict: dict[Any, Any]) -> dict[Any, Any]:
    """A dictionary with the entries of both; those of the second count."""
    return {**default_dict, **additional_dict}


def has_no_children_ignoring_parametrizations(module: Any) -> bool:
    """Whether a module has no submodules but those of parametrizations."""
    names = list(module._modules)
    return not names or names == ["parametrizations"]


# --- configurations ----------------------------------------------------------------------------------------------
def activation_dtype(qconfig: Any) -> Any:
    """The dtype of the activation of a configuration."""
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype of the weight of a configuration."""
    return qconfig.weight().dtype


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether the scale of activations is found before they are seen."""
    dynamic = getattr(qconfig.activation(), "is_dynamic", False)
    return activation_dtype(qconfig) in _STATIC and not dynamic


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether the scale of activations is that of each one's own range."""
    return bool(get_qconfig_dtypes(qconfig)[2])


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether activations have eight bits."""
    return activation_dtype(qconfig) in _INT8


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether activations have 32 bits."""
    return activation_dtype(qconfig) in (torch.qint32, torch.int32)


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether weights are quantised."""
    return weight_dtype(qconfig) in (torch.quint4x2, *_STATIC)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether weights have eight bits."""
    return weight_dtype(qconfig) in _INT8


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantised by their own range, to eight bits, and weights too."""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    return activation in (torch.quint8, torch.uint8) and weight in (torch.qint8, torch.int8) and bool(dynamic)


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, Any]:
    """The dtypes of activation and weight, and whether the activation is dynamic."""
    activation, weight = qconfig.activation(), qconfig.weight()
    return activation.dtype, weight.dtype, getattr(activation, "is_dynamic", False)


def get_quant_type(qconfig: Any) -> QuantType:
    """The kind of quantisation that a configuration means. ValueError: it means none."""
    activation, weight = qconfig.activation(), qconfig.weight()
    static = (torch.quint8, torch.qint8, torch.quint4x2, torch.qint32, torch.uint8, torch.int8)
    if weight.dtype in static:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        return QuantType.STATIC if activation.dtype in static else QuantType.WEIGHT_ONLY
    if weight.dtype == torch.float16:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype == torch.float16:
            return QuantType.STATIC
    raise ValueError(
        f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}),weight({weight.dtype})"
    )


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """The scheme, dtype, scale and zero point of an observer, and the axis of channels."""
    scheme = getattr(observer_or_fake_quant, "qscheme", None)
    found = {"qscheme": scheme, "dtype": observer_or_fake_quant.dtype}
    if scheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric):
        affine = {torch.per_tensor_symmetric: torch.per_tensor_affine}.get(scheme, torch.per_channel_affine)
        found["qscheme"] = affine
    if is_per_channel(scheme):
        found["axis"] = observer_or_fake_quant.ch_axis
    scale, zero_point = observer_or_fake_quant.calculate_qparams()
    found |= {"scale": scale, "zero_point": zero_point}
    for name in ("quant_min", "quant_max"):
        if hasattr(observer_or_fake_quant, name):
            found[name] = getattr(observer_or_fake_quant, name)
    return found


def get_swapped_custom_module_class(custom_module: Any, custom_module_class_mapping: Any, qconfig: Any) -> Any:
    """The class that takes the place of a module's, by the kind of quantisation. AssertionError: there is none."""
    kind = get_quant_type(qconfig)
    mapping = custom_module_class_mapping.get(kind, {})
    if type(custom_module) not in mapping:
        raise AssertionError(
            f"did not find corresponding observed module class for {type(custom_module)} in mapping: {mapping}"
        )
    return mapping[type(custom_module)]


# --- ranges ------------------------------------------------------------------------------------------------------
def check_min_max_valid(min_val: Any, max_val: Any) -> bool:
    """Whether a range was seen; a warning says that none was.

    Raises:
        AssertionError: the least is greater than the greatest.
    """
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.", UserWarning, stacklevel=2
        )
        return False
    if min_val.dim() == 0 or max_val.dim() == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.",
                UserWarning,
                stacklevel=2,
            )
            return False
        if not min_val <= max_val:
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
    elif not bool((min_val <= max_val).all()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def calculate_qmin_qmax(
    quant_min: Any, quant_max: Any, has_customized_qrange: bool, dtype: Any, reduce_range: bool
) -> tuple[int, int]:
    """The least and greatest integer: those of the caller, or those of a dtype, of which `reduce_range` takes one bit.

    Raises:
        AssertionError: bounds of the caller that the dtype does not allow.
    """
    if has_customized_qrange:
        if dtype in (torch.qint32, torch.int32):
            initial_low, initial_high = 0, 2**32 - 1
        else:
            initial_low, initial_high = 0, 255
        if quant_min is not None and quant_max is not None:
            initial_low, initial_high = quant_min, quant_max
        span = initial_high - initial_low + 1
        limit = (
            2**32 if dtype in (torch.qint32, torch.int32) else 2**16 if dtype in (torch.int16, torch.uint16) else 256
        )
        if not 0 < span <= limit:
            raise AssertionError(
                f"quantization range should be positive and not exceed the maximum bit range (={limit})."
            )
        if reduce_range:
            return initial_low // 2, initial_high // 2
        return initial_low, initial_high
    if dtype in (torch.qint8, torch.int8):
        return (-64, 63) if reduce_range else (-128, 127)
    if dtype in (torch.quint8, torch.uint8):
        return (0, 127) if reduce_range else (0, 255)
    if dtype in (torch.qint32, torch.int32):
        return -(2**31), 2**31 - 1
    if dtype == torch.uint16:
        return 0, 2**16 - 1
    if dtype == torch.int16:
        return -(2**15), 2**15 - 1
    return 0, 15


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """AssertionError: zero is not among the integers, or the least is not less than the greatest."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def determine_qparams(
    min_val: Any, max_val: Any, quant_min: int, quant_max: int, dtype: Any, eps: Any, has_customized_qrange: bool,
    qscheme: Any = torch.per_tensor_affine,
) -> tuple[Any, Any]:  # fmt: skip
    """The scales (float32, float64 for such ranges) and zero points of ranges, each a tensor with at least one dimension.

    Args:
        eps (Tensor): the least scale.
        has_customized_qrange (bool): the integers are not those of the dtype.
    """
    if not check_min_max_valid(min_val, max_val):
        return torch.tensor([1.0], device=min_val.device.type), torch.tensor([0], device=min_val.device.type)
    low, high = torch.clamp(min_val, max=0), torch.clamp(max_val, min=0)
    wide = torch.float64 if low.dtype == torch.float64 else torch.float32
    scale = torch.ones(low.shape, dtype=wide, device=low.device)
    zero_point = torch.zeros(low.shape, dtype=torch.int64, device=low.device)
    eps = eps.to(low.device)
    if qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric):
        scale = torch.max(torch.max(-low, high) / (float(quant_max - quant_min) / 2), eps)
        if dtype in (torch.uint8, torch.quint8):
            middle = (quant_min + quant_max) // 2 if has_customized_qrange else 128
            zero_point = torch.full_like(zero_point, middle)
        elif dtype == torch.uint16:
            zero_point = torch.full_like(zero_point, 2**15)
    elif qscheme == torch.per_channel_affine_float_qparams:
        scale = (max_val - min_val) / float(quant_max - quant_min)
        scale = torch.where(scale > eps, scale, torch.ones_like(scale))
        zero_point = -1 * min_val / scale
    else:
        scale = torch.max((high - low) / float(quant_max - quant_min), eps)
        zero_point = quant_min - torch.round(low / scale).to(torch.int)
        zero_point = torch.clamp(zero_point, quant_min, quant_max)
    if scale.dim() == 0:
        scale = torch.tensor([float(scale)], dtype=scale.dtype, device=scale.device)
    if zero_point.dim() == 0:
        floats = qscheme == torch.per_channel_affine_float_qparams
        number = float(zero_point) if floats else int(zero_point)
        zero_point = torch.tensor([number], dtype=zero_point.dtype, device=zero_point.device)
    return (scale if wide == torch.float64 else scale.to(torch.float32)), zero_point


# --- modules -----------------------------------------------------------------------------------------------------
def _parent_name(target: str) -> tuple[str, str]:
    """The path of the module that holds a target, and the target's name there."""
    path, _, name = target.rpartition(".")
    return path, name


def _get_path_of_module(root: Any, submodule: Any) -> str | None:
    """The path of a submodule, or None."""
    return next((name for name, module in root.named_modules() if module is submodule), None)


def _assert_and_get_unique_device(module: Any, what: str = "prepare") -> Any:
    """The one device of the parameters and buffers of a module, or None if it has none. AssertionError: there are several."""
    devices = {t.device for t in (*module.parameters(), *module.buffers())}
    if len(devices) > 1:
        raise AssertionError(
            f"{what} only works with cpu or single-device CUDA modules, but got devices " + str(devices)
        )
    return next(iter(devices), None)


def _in_place_of(mod: Any, made: Any, what: str = "prepare", without: Any = None) -> Any:
    """A module that takes the place of another: with its hooks but for `without`, and on its device."""
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not without:
            made.register_forward_hook(hook)
    device = _assert_and_get_unique_device(mod, what)
    return made.to(device) if device else made


def get_fqn_to_example_inputs(model: Any, example_inputs: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """The positional inputs that each submodule gets when the model is called."""
    found: dict[str, tuple[Any, ...]] = OrderedDict()
    hooks = []

    def remember(name: str) -> Callable[..., None]:
        def hook(module: Any, args: Any) -> None:
            found[name] = args

        return hook

    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(remember(name)))
    try:
        model(*example_inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
