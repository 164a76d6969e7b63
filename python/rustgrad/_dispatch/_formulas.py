"""Gradients of ops as ops of ATen: what a formula is, and what it knows."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .._C import Tensor
from .._ops import OpOverload, ops
from ._calls import called

__all__ = ["Formula", "Known", "Shape", "described", "find", "gradient_of", "run", "view_of"]

aten = ops.aten
_table: dict[OpOverload, Formula] = {}


class Formula:
    """The gradient of an op.

    Attributes:
        function (callable): `function(known, grad)` gives {argument: gradient}; `grad` is a list where the op has several results.
        saves (list): arguments, and "result", "result1" ..., whose tensors it reads.
        outputs (int): how many results have a gradient.
        view (bool): whether the op is a view.
    """

    def __init__(self, function: Callable[..., Any], saves: str, outputs: int, view: bool) -> None:
        self.function, self.saves, self.outputs, self.view = function, saves.split(), outputs, view


class Shape:
    """A tensor that was not kept: its form."""

    def __init__(self, t: Tensor) -> None:
        self.shape, self.dtype, self.device, self.requires_grad = tuple(t.shape), t.dtype, t.device, t.requires_grad
        self.strides = (
            tuple(t.stride()) if t.layout.__class__.__name__ == "layout" and str(t.layout) == "torch.strided" else ()
        )

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def by_columns(self) -> bool:
        """Whether a matrix lies in memory by columns."""
        return len(self.shape) == 2 and self.strides == (1, self.shape[0])


def described(bound: dict[str, Any]) -> dict[str, Any]:
    """Arguments with the forms of tensors in their places."""
    return {k: _described(v) for k, v in bound.items()}


def _described(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Shape(value)
    if isinstance(value, (list, tuple)):
        return [_described(v) for v in value]
    return value


class Known:
    """What a formula knows: arguments by name (`known.self`), those that were not kept as their `Shape`."""

    def __init__(self, values: dict[str, Any], needs: Any) -> None:
        self.__dict__.update({k if k != "self" else "self_": v for k, v in values.items()})
        self._shapes, self._needs = values, {}
        given = iter(needs)
        for name, value in values.items():
            if isinstance(value, Shape):
                self._needs[name] = next(given)
            elif isinstance(value, list) and any(isinstance(v, Shape) for v in value):
                self._needs[name] = [next(given) if isinstance(v, Shape) else False for v in value]

    @classmethod
    def of(cls, formula: Formula, bound: dict[str, Any]) -> Known | None:
        """What is known of a call whose tensors are not kept; None where the formula reads some."""
        values = described(bound)
        known = cls(values, (t.requires_grad for t in _shapes_in(values)))
        return None if formula.saves else known

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def shape(self, name: str) -> Any:
        """The form of an argument, a `Shape`."""
        return self._shapes[name]

    def put(self, name: str, at: int | None, value: Tensor) -> None:
        """Gives an argument, or an item of a list, its tensor."""
        key = "self_" if name == "self" else name
        if at is None:
            self.__dict__[key] = value
        else:
            self.__dict__[key] = [value if i == at else v for i, v in enumerate(self.__dict__[key])]

    def needs(self, name: str) -> Any:
        """Whether an argument needs a gradient; of a list, of each item."""
        return self._needs.get(name, False)

    def forms(self) -> Iterator[Shape]:
        """The forms of all tensors in their order."""
        return _shapes_in(self._shapes)

    def gradients(self, formula: Formula, grad: Any) -> list[Any]:
        """The gradient of each tensor among the arguments, in their order."""
        none = all(g is None for g in grad) if isinstance(grad, (list, tuple)) else grad is None
        found = {} if none else formula.function(self, grad)
        made: list[Any] = []
        for name, value in self._shapes.items():
            grads = found.get(name)
            if isinstance(value, Shape):
                made.append(grads if self._needs[name] else None)
            elif isinstance(value, list):
                shapes = [i for i, v in enumerate(value) if isinstance(v, Shape)]
                made += [None if grads is None or not self._needs[name][i] else grads[i] for i in shapes]
        return made

    def fitted(self, name: str, grad: Any) -> Any:
        """A gradient summed over the dimensions that an argument was broadcast along, of its dtype."""
        shape = self._shapes[name]
        grad = summed(grad, shape.shape)
        if grad.dtype != shape.dtype and not shape.dtype.is_complex:
            if grad.dtype.is_complex:
                grad = run(aten.real.default, grad)
            grad = grad if grad.dtype == shape.dtype else run(aten._to_copy.default, grad, dtype=shape.dtype)
        return grad


def _shapes_in(values: dict[str, Any]) -> Iterator[Shape]:
    for value in values.values():
        for v in value if isinstance(value, list) else (value,):
            if isinstance(v, Shape):
                yield v


def run(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Calls an op.

    Raises:
        RuntimeError: the `__torch_dispatch__` of a class returns None.
    """
    result = called(op, args, kwargs)
    if result is None:
        raise RuntimeError(
            f"{op}: a gradient needs its result; expected a tensor, but got None from __torch_dispatch__"
        )
    return result


def summed(grad: Any, shape: tuple[int, ...]) -> Any:
    """The sum over the dimensions that `shape` was broadcast along."""
    if tuple(grad.shape) == shape:
        return grad
    extra = grad.dim() - len(shape)
    dims = [*range(extra), *(d for d in range(extra, grad.dim()) if shape[d - extra] == 1 and grad.shape[d] != 1)]
    made = run(aten.sum.dim_IntList, grad, dims, True) if dims else grad
    return run(aten.view.default, made, list(shape)) if extra else made


def gradient_of(*overloads: OpOverload, saves: str = "", outputs: int = 1) -> Callable[..., Any]:
    """Adds a formula for these overloads."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            _table[overload] = Formula(function, saves, outputs, view=False)
        return function

    return add


def view_of(*overloads: OpOverload) -> Callable[..., Any]:
    """Adds the formula of a view, or of several."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            _table[overload] = Formula(function, "", sys.maxsize, view=True)
        return function

    return add


@functools.cache
def _load() -> None:
    for name in ("_formulas_views", "_formulas_math", "_formulas_sums", "_formulas_nn"):
        importlib.import_module(f".{name}", __package__)


def find(op: OpOverload) -> Formula | None:
    """The formula of an op; of one that writes in place, that of the op which does not."""
    _load()
    found = _table.get(op)
    if found is None and op.overloadpacket.__name__.endswith("_") and op.namespace == "aten":
        name = op.overloadpacket.__name__
        if not name.endswith("__"):
            found = _table.get(getattr(getattr(aten, name[:-1]), op._overload))
    return found
