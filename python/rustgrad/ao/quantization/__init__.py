"""`rustgrad.ao.quantization`: marks in float models, which do nothing; what would quantise refuses."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any, NoReturn

import rustgrad

from ..._absent import getattr_of
from ...nn.modules.module import Module

__all__ = [
    "DeQuantStub",
    "FakeQuantizeBase",
    "ObserverBase",
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


class _Partial(functools.partial):
    def with_args(self, **kwargs: Any) -> _Partial:
        return _Partial(self, **kwargs)


class ObserverBase(ABC, Module):
    """What an observer derives from: a module that sees values and tells the parameters of a quantisation by them."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Sees `x`."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> _Partial:
        """A constructor with these arguments filled in."""
        return _Partial(cls, **kwargs)


class FakeQuantizeBase(ABC, Module):
    """What a module that rounds as a quantised one would derives from: two switches, one byte each in its state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", rustgrad.tensor([1], dtype=rustgrad.uint8))
        self.register_buffer("observer_enabled", rustgrad.tensor([1], dtype=rustgrad.uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """`x`, rounded where `fake_quant_enabled`."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether `forward` rounds."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """`forward` no longer rounds."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether `forward` sees values."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """`forward` no longer sees values."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> _Partial:
        """A constructor with these arguments filled in."""
        return _Partial(cls, **kwargs)


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
