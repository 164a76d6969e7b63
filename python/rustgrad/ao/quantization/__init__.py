"""`rustgrad.ao.quantization`: marks in float models, which do nothing; what would quantise refuses."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._absent import getattr_of
from ...nn.modules.module import Module

__all__ = [
    "DeQuantStub",
    "QConfig",
    "QuantStub",
    "QuantWrapper",
    "convert",
    "fuse_modules",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "prepare",
    "prepare_qat",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
]


class QuantStub(Module):
    """Marks where a model's input would be quantised: returns it."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x


class DeQuantStub(Module):
    """Marks where a model's output would become float again: returns it."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.add_module("quant", QuantStub())
        self.add_module("dequant", DeQuantStub())
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """What the module makes of `X`."""
        return self.dequant(self.module(self.quant(X)))


class QConfig:
    """NotImplementedError: a configuration of observers, which are not here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("QConfig")


def _refuse(name) -> NoReturn:
    raise NotImplementedError(
        f"quantization.{name}: there are no quantised tensors here. Hint: half precision (`model.half()`, autocast) is."
    )


def _refusing(name):
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        _refuse(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "NotImplementedError: there are no quantised tensors."
    return function


convert, fuse_modules, prepare, prepare_qat = map(_refusing, ("convert", "fuse_modules", "prepare", "prepare_qat"))
quantize, quantize_dynamic, quantize_qat = map(_refusing, ("quantize", "quantize_dynamic", "quantize_qat"))
get_default_qconfig, get_default_qat_qconfig = map(_refusing, ("get_default_qconfig", "get_default_qat_qconfig"))
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
