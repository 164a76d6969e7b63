"""The methods of `Tensor` about quantisation: what a tensor answers that is not quantised. Quantised ones have their own answers."""

from __future__ import annotations

from typing import Any

from . import _C


def _wanting(name):
    def method(self: Any) -> Any:
        own = getattr(type(self), name)
        if getattr(own, "__wrapped__", own) is not method:  # `Tensor.q_scale(t)`
            return own(self)
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: {name} expected a quantised tensor, got one of "
            f"{self.dtype}. Hint: torch.quantize_per_tensor."
        )

    method.__name__ = name
    method.__doc__ = "NotImplementedError: the tensor is not quantised."
    return method


class Methods:
    """Further methods of `Tensor`."""

    def dequantize(self):
        """The numbers that a quantised tensor stands for, in float32; another tensor converted to float32."""
        own = type(self).dequantize
        if self.is_quantized and getattr(own, "__wrapped__", own) is not Methods.dequantize:
            return own(self)
        return self.to(_C.float32)


for _name in (
    "int_repr q_scale q_zero_point qscheme q_per_channel_scales q_per_channel_zero_points q_per_channel_axis"
).split():
    setattr(Methods, _name, _wanting(_name))
