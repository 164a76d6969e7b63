"""A linear layer with a dequantised weight."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......nn import functional as F
from .utils import ReferenceQuantizedModule

__all__ = ["Linear"]


class Linear(nn.Linear, ReferenceQuantizedModule):
    """`nn.Linear` whose weight is quantised and dequantised.

    Args:
        weight_qparams (dict): `qscheme`, `dtype`, `scale`, `zero_point` and `axis`.
    """

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self):
        return "QuantizedLinear(Reference)"

    def forward(self, x: Any) -> Any:
        """`x @ weight.T + bias`."""
        return F.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: Any, weight_qparams: Any) -> Any:
        """The layer of a float one."""
        made = cls(
            float_linear.in_features, float_linear.out_features, float_linear.bias is not None,
            device=float_linear.weight.device, dtype=float_linear.weight.dtype, weight_qparams=weight_qparams,
        )  # fmt: skip
        made.weight = nn.Parameter(float_linear.weight.detach())
        if float_linear.bias is not None:
            made.bias = nn.Parameter(float_linear.bias.detach())
        return made


def __dir__() -> list[str]:
    return __all__
