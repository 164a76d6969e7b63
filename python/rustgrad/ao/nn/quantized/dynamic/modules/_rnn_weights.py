"""Weights of recurrent layers and cells as their products take them."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ...modules.utils import _quantize_weight

__all__: list[str] = []


def pack_weight_bias(qweight: Any, bias: Any, dtype: Any) -> Any:
    """A weight and a bias as `linear_dynamic` takes them, or `linear_dynamic_fp16`."""
    ops = torch.ops.quantized
    return ops.linear_prepack(qweight, bias) if dtype == torch.qint8 else ops.linear_prepack_fp16(qweight, bias)


def _cell_params(dtype, weights, biases):
    ops = torch.ops.quantized
    packed = [pack_weight_bias(w, b, dtype) for w, b in zip(weights, biases, strict=True)]
    if dtype == torch.qint8:
        return ops.make_quantized_cell_params_dynamic(*packed, *biases, True)
    return ops.make_quantized_cell_params_fp16(*packed)


def _empty_weight(dtype, rows, columns):
    floats = torch.randn(rows, columns).float()
    if dtype == torch.qint8:
        return torch.quantize_per_tensor(floats, scale=1.0, zero_point=0, dtype=torch.qint8)
    return floats


def _weight_observer(mod):
    """The observer of a module's weights. AssertionError: it has no configuration."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if mod.qconfig is not None and mod.qconfig.weight is not None:
        return mod.qconfig.weight
    from ......ao.quantization.qconfig import default_dynamic_qconfig

    return default_dynamic_qconfig.weight


def _quantised(weight, make_observer):
    """A weight as the observer's dtype wants it, and that dtype. RuntimeError: it is neither qint8 nor float16."""
    observer = make_observer()
    if observer.dtype not in (torch.qint8, torch.float16):
        raise RuntimeError(
            f"The only supported dtypes for dynamic quantized RNN are qint8 and float16 got: {observer.dtype}"
        )
    weight = weight.detach().float()
    if observer.dtype == torch.float16:
        return weight, torch.float16
    observer(weight)
    return _quantize_weight(weight, observer), torch.qint8


def __dir__() -> list[str]:
    return __all__
