"""Layers that follow each other, as one module: what `fuse_modules` makes and `prepare` observes as a whole."""

from __future__ import annotations

from typing import Any

from ..... import nn

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]


class _FusedModule(nn.Sequential):
    """A sequence of layers of known classes."""


def _fused(name, names, *kinds):
    """A class of sequences of modules, whose constructor checks their classes."""

    def __init__(self: Any, *modules: Any) -> None:
        for module, kind in zip(modules, kinds, strict=True):
            if not isinstance(module, kind):
                wanted = ", ".join(k.__name__ for k in kinds)
                raise AssertionError(
                    f"{name}: Incorrect types for input modules; expected {wanted}, got {type(module).__name__}"
                )
        _FusedModule.__init__(self, *modules)

    __init__.__doc__ = f"{names}, in this order. AssertionError: a module of another class."
    doc = f"{names} in sequence."
    return type(name, (_FusedModule,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


ConvReLU1d: Any = _fused("ConvReLU1d", "A convolution and relu", nn.Conv1d, nn.ReLU)
ConvReLU2d: Any = _fused("ConvReLU2d", "A convolution and relu", nn.Conv2d, nn.ReLU)
ConvReLU3d: Any = _fused("ConvReLU3d", "A convolution and relu", nn.Conv3d, nn.ReLU)
LinearReLU: Any = _fused("LinearReLU", "A linear layer and relu", nn.Linear, nn.ReLU)
ConvBn1d: Any = _fused("ConvBn1d", "A convolution and batch norm", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d: Any = _fused("ConvBn2d", "A convolution and batch norm", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d: Any = _fused("ConvBn3d", "A convolution and batch norm", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d: Any = _fused("ConvBnReLU1d", "A convolution, batch norm and relu", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d: Any = _fused("ConvBnReLU2d", "A convolution, batch norm and relu", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d: Any = _fused("ConvBnReLU3d", "A convolution, batch norm and relu", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d: Any = _fused("BNReLU2d", "Batch norm and relu", nn.BatchNorm2d, nn.ReLU)
BNReLU3d: Any = _fused("BNReLU3d", "Batch norm and relu", nn.BatchNorm3d, nn.ReLU)
LinearBn1d: Any = _fused("LinearBn1d", "A linear layer and batch norm", nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU: Any = _fused("LinearLeakyReLU", "A linear layer and leaky relu", nn.Linear, nn.LeakyReLU)
LinearTanh: Any = _fused("LinearTanh", "A linear layer and tanh", nn.Linear, nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution to which another tensor is added."""

    def __init__(self, conv: Any, add: Any) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Any, x2: Any) -> Any:
        """`add(conv(x1), x2)`."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution to which another tensor is added, and relu."""

    def __init__(self, conv: Any, add: Any, relu: Any) -> None:
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Any, x2: Any) -> Any:
        """`relu(add(conv(x1), x2))`."""
        return self.relu(self.add(self[0](x1), x2))


def __dir__() -> list[str]:
    return __all__
