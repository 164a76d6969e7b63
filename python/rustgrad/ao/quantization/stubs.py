"""Marks in float models of where values are quantised and become float again."""

from __future__ import annotations

from typing import Any

from ...nn.modules.module import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(Module):
    """Marks where a value is quantised: returns it, and becomes `Quantize` by `convert`.

    Args:
        qconfig (QConfig, optional): of the value; by default that of the model.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x


class DeQuantStub(Module):
    """Marks where a value becomes float again: returns it, and becomes `DeQuantize` by `convert`."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`.

    Args:
        module (Module): takes one input and gives one output.
    """

    quant: QuantStub
    dequant: DeQuantStub
    module: Module

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """What the module makes of `X`."""
        return self.dequant(self.module(self.quant(X)))


def __dir__() -> list[str]:
    return __all__
