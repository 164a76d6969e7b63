"""A linear layer with batch norm that is trained with a rounded weight."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......nn import functional as F
from ......nn.utils.fusion import fuse_linear_bn_weights
from .... import intrinsic as nni
from ....qat.modules.linear import take_parameters
from .conv_fused import _BatchNormed, _copy_bn

__all__ = ["LinearBn1d"]


class LinearBn1d(_BatchNormed, nn.Linear, nni._FusedModule):
    """A linear layer with batch norm: see `nn.Linear` and `nn.BatchNorm1d`.

    Args:
        freeze_bn (bool): the running statistics are used, and stay.
        qconfig (QConfig): its `weight` makes the module that rounds.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias)
        self._add_bn(nn.BatchNorm1d(out_features, eps, momentum, True, True), freeze_bn, qconfig)

    def forward(self, input: Any) -> Any:
        """Batch norm of the product with the rounded weight."""
        return self._normed(lambda weight: F.linear(input, weight))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a fused float one with a configuration. AssertionError: another class."""
        if type(mod) is not nni.LinearBn1d:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {nni.LinearBn1d.__name__}")
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid config")
        linear, bn = mod[0], mod[1]
        made = cls(
            linear.in_features, linear.out_features, linear.bias is not None, bn.eps, bn.momentum, False, mod.qconfig
        )
        return _copy_bn(take_parameters(made, linear), bn)

    def to_float(self) -> Any:
        """The float layer with batch norm folded in."""
        made = nn.Linear(self.in_features, self.out_features)
        bn = self.bn
        weight, bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        made.weight, made.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
        return made.train(self.training)


def __dir__() -> list[str]:
    return __all__
