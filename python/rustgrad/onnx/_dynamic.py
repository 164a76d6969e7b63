"""Which dimensions of the inputs vary, from `dynamic_axes` or `dynamic_shapes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._base import Tensor
from ..export import Dim
from .errors import OnnxExporterError

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

    def from_axes(self, axes: Mapping[str, Any], outputs: list[str]) -> None:
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
            elif name in outputs or not outputs:
                self.outputs[name] = {int(a): str(s) for a, s in where.items()}
            else:
                known = ", ".join([*self.names, *outputs])
                raise OnnxExporterError(
                    f"onnx.export: dynamic_axes names '{name}', which is no input or output; expected one of {known}"
                )

    def from_shapes(
        self, shapes: Any, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str]
    ) -> None:
        """Takes PyTorch's `dynamic_shapes`: what varies, in containers like those of the arguments."""
        places = {id(t): i for i, t in enumerate(self.tensors)}
        given = dict(zip(parameters, args), **kwargs)
        if isinstance(shapes, Mapping):
            unknown = [name for name in shapes if name not in given]
            if unknown and len(args) == 1 and not kwargs and isinstance(args[0], Mapping):
                given, unknown = {"": args[0]}, []
                shapes = {"": shapes}
            if unknown:
                raise OnnxExporterError(
                    f"onnx.export: dynamic_shapes names {unknown}, which are no arguments; expected {list(given)}"
                )
            pairs = [(given[name], spec) for name, spec in shapes.items()]
        else:
            pairs = list(zip([*args, *kwargs.values()], shapes))
        for value, spec in pairs:
            self._tree(value, spec, places)

    def _tree(self, value: Any, spec: Any, places: dict[int, int]) -> None:
        if spec is None or value is None:
            return
        if isinstance(value, Tensor):
            at = places[id(value)]
            for axis, dim in spec.items() if isinstance(spec, Mapping) else enumerate(spec):
                self._dim(at, int(axis), dim)
        elif isinstance(value, Mapping):
            for key, v in value.items():
                self._tree(v, spec.get(key) if isinstance(spec, Mapping) else None, places)
        elif isinstance(value, (list, tuple)):
            for v, s in zip(value, spec):
                self._tree(v, s, places)

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
