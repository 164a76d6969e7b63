"""A linear layer whose weight is rounded as a quantised one would be, for training."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....nn import functional as F
from ... import intrinsic as nni

__all__ = ["Linear"]


def checked(cls, mod, name, allowed):
    """A float module for `from_float`, the first part of a fused one, and its configuration. AssertionError: another class."""
    if type(mod) not in allowed:
        raise AssertionError(f" qat.{name}.from_float only works for {allowed[0].__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    return (mod[0] if isinstance(mod, nni._FusedModule) else mod), mod.qconfig


def take_parameters(made, mod):
    """Gives a module the parameters of a float one."""
    made.weight = mod.weight
    if hasattr(mod, "bias"):
        made.bias = mod.bias
    return made


class Linear(nn.Linear):
    """`nn.Linear` with a weight that is rounded.

    Args:
        qconfig (QConfig): its `weight` makes the module that rounds.

    Raises:
        AssertionError: no configuration.
    """

    _FLOAT_MODULE: Any = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    def forward(self, input: Any) -> Any:
        """`input @ rounded weight.T + bias`."""
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The module of a float one with a configuration."""
        from .....nn.modules.linear import NonDynamicallyQuantizableLinear

        mod, qconfig = checked(cls, mod, "Linear", (cls._FLOAT_MODULE, NonDynamicallyQuantizableLinear, nni.LinearReLU))
        made = cls(mod.in_features, mod.out_features, bias=mod.bias is not None, qconfig=qconfig)
        return take_parameters(made, mod)

    def to_float(self) -> Any:
        """The float module with these parameters."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        return take_parameters(made, self).train(self.training)


def __dir__() -> list[str]:
    return __all__
