"""Linear maps: `Linear`, `LazyLinear`, `Bilinear`, and `Identity`."""

from __future__ import annotations

import math
from typing import Any

from ..._base import empty, ops
from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from ...autograd.grad_mode import no_grad
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]

_linear = ops["nn.functional.linear"]


class Identity(Module):
    """Returns its input; accepts and ignores any constructor arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    r"""Applies :math:`y = x A^T + b`.

    Args:
        in_features (int): size of the last dimension of the input.
        out_features (int): size of the last dimension of the output.
        bias (bool): whether there is an additive bias.

    Shape:
        input `(*, in_features)`, output `(*, out_features)`.

    Attributes:
        weight: `(out_features, in_features)`, uniform in +-1/sqrt(in_features).
        bias: `(out_features)`, likewise; None without bias.
    """

    weight: Parameter
    # None without bias; `Any` spares users who know that there is one a None check.
    bias: Parameter | Any

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws weight and bias."""
        # a = sqrt(5) makes the bound of kaiming_uniform_ equal 1 / sqrt(in_features).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        # Straight from the dictionary: attribute access to a parameter costs as much as a small op.
        params = self._parameters
        if "weight" in params and "bias" in params:
            return _linear(input, params["weight"], params["bias"])
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under the name that `MultiheadAttention` gives its output projection."""


class Bilinear(Module):
    r"""Applies :math:`y = x_1^T A x_2 + b`.

    Shape:
        input1 `(*, in1_features)`, input2 `(*, in2_features)`, output `(*, out_features)`.
    """

    weight: Parameter
    bias: Parameter | Any

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws weight and bias."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        from ..functional import bilinear

        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` whose `in_features` is the last size of the first input; it is a `Linear` from then on.

    Args:
        out_features (int): size of the last dimension of the output.
        bias (bool): whether there is an additive bias.

    Shape:
        input `(*, in_features)`, output `(*, out_features)`.
    """

    cls_to_become = Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: DeviceLike | None = None, dtype: dtype | None = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Redraws weight and bias, once they are initialized."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Materializes and draws weight and bias for inputs like `input`."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            # Loaded from a state dict, which has the weight but not its meaning.
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
