"""Which dimensions of the inputs vary, from `dynamic_axes` or `dynamic_shapes`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from .._base import Tensor
from ..export import Dim
from .errors import OnnxExporterError, OnnxExporterWarning

__all__ = ["Dynamic"]


class Dynamic:
    """The sizes that vary.

    Attributes:
        inputs (list): {axis: name} for each input.
        outputs (dict): {name of an output: {axis: name}}.
        bounds (dict): the least and the largest value, by name.
    """

    def __init__(self, names: list[str], tensors: list[Tensor]) -> None:
        self.names, self.tensors = names, tensors
        self.inputs: list[dict[int, str]] = [{} for _ in tensors]
        self.outputs: dict[str, dict[int, str]] = {}
        self.bounds: dict[str, tuple[int, int]] = {}

    def add(self, at: int, axis: int, name: str, bounds: tuple[int | None, int | None] = (None, None)) -> None:
        """Makes a dimension of an input vary."""
        ndim = self.tensors[at].dim()
        if not -ndim <= axis < ndim:
            raise OnnxExporterError(
                f"onnx.export: input '{self.names[at]}' has {ndim} dimensions; got the dynamic dimension {axis}"
            )
        self.inputs[at][axis % ndim] = name
        low, high = bounds
        self.bounds[name] = (max(2, low or 0), int(1e9) if high is None else high)

    def from_axes(self, axes: Mapping[str, Any]) -> None:
        """Takes PyTorch's `dynamic_axes`: {name: {axis: name of the size} or [axes]}."""
        for name, given in axes.items():
            where = (
                given
                if isinstance(given, Mapping)
                else {a: f"{name}_dynamic_axes_{i + 1}" for i, a in enumerate(given)}
            )
            if name in self.names:
                for axis, size in where.items():
                    self.add(self.names.index(name), int(axis), str(size))
            else:
                self.outputs[name] = {int(a): str(s) for a, s in where.items()}

    def check_outputs(self, names: list[str]) -> None:
        """Warns of names in `dynamic_axes` that are neither of inputs nor of results."""
        for name in self.outputs:
            if name not in names:
                known = ", ".join([*self.names, *names])
                warnings.warn(
                    f"onnx.export: Provided key {name} for dynamic axes is not a valid input/output name; expected one of {known}",
                    OnnxExporterWarning,
                    stacklevel=4,
                )

    def from_shapes(self, shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str]) -> None:
        """Takes PyTorch's `dynamic_shapes`: what varies, in containers like those of the arguments."""
        names = [*(parameters[i] if i < len(parameters) else f"args[{i}]" for i in range(len(args))), *kwargs]
        values = [*args, *kwargs.values()]
        if isinstance(shapes, Mapping):
            unknown = [name for name in shapes if name not in names]
            if unknown:
                raise OnnxExporterError(
                    f"onnx.export: dynamic_shapes names {unknown}, which are no arguments; expected {names}"
                )
            specs = [shapes.get(name) for name in names]
        else:
            specs = [*shapes, *[None] * (len(values) - len(shapes))]
        places = iter(range(len(self.tensors)))
        for value, spec in zip(values, specs):
            self._tree(value, spec, places)

    def _tree(self, value: Any, spec: Any, places: Iterator[int]) -> None:
        """Walks an argument in the order of its tensors, along with what is said of it."""
        if isinstance(value, Tensor):
            at = next(places)
            for axis, dim in spec.items() if isinstance(spec, Mapping) else enumerate(spec or ()):
                self._dim(at, int(axis), dim)
        elif isinstance(value, Mapping):
            for key, v in value.items():
                self._tree(v, spec.get(key) if isinstance(spec, Mapping) else None, places)
        elif isinstance(value, (list, tuple)):
            for i, v in enumerate(value):
                self._tree(v, spec[i] if isinstance(spec, (list, tuple)) and i < len(spec) else None, places)

    def _dim(self, at: int, axis: int, dim: Any) -> None:
        if dim is None or dim is Dim.STATIC or isinstance(dim, int):
            return
        if isinstance(dim, str):
            self.add(at, axis, dim)
        elif isinstance(dim, Dim):
            self.add(at, axis, dim.__name__, (dim.min, dim.max))
        elif dim is Dim.AUTO or dim is Dim.DYNAMIC:
            self.add(at, axis, f"{self.names[at]}_dim_{axis}")
        else:
            raise OnnxExporterError(
                f"onnx.export: a dynamic shape of '{self.names[at]}' is {dim!r}; expected a string, export.Dim, Dim.AUTO, "
                "Dim.DYNAMIC, Dim.STATIC, an int or None"
            )
