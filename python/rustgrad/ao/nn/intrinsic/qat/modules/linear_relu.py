"""A linear layer with relu that is trained with a rounded weight."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......nn import functional as F
from .... import intrinsic as nni
from ....qat.modules import linear as nnqat
from ....qat.modules.linear import take_parameters

__all__ = ["LinearReLU"]


class LinearReLU(nnqat.Linear, nni._FusedModule):
    """A linear layer with relu: see `nn.Linear`.

    Args:
        qconfig (QConfig): its `weight` makes the module that rounds.
    """

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None) -> None:
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input: Any) -> Any:
        """`relu` of the product with the rounded weight."""
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self) -> Any:
        """The fused float layer."""
        linear = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None)
        return nni.LinearReLU(take_parameters(linear, self), nn.ReLU()).train(self.training)


def __dir__() -> list[str]:
    return __all__
