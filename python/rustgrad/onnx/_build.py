"""From a merged recording to a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._recording._merge import Merged
from .._recording._trace import Ref, Step, Value, map_arguments, refs
from . import _translate  # noqa: F401 - fills the table
from ._graph import Graph, Val, table
from ._registered import SymbolicGraph
from .errors import OnnxExporterError, UnsupportedOperatorError

__all__ = ["Builder", "translation"]

# Views of parameters stay nodes, so that the parameter is stored once, as it is.
_VIEWS = {"t", "T.__get__", "mT.__get__", "transpose", "permute", "swapaxes", "view", "reshape", "unsqueeze", "expand"}
_OTHER_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "self": "input"}


def translation(key: str) -> Callable[..., Any] | None:
    """The translation of an op, or of the op that it is in place."""
    found = table.get(key)
    if found is None and key.endswith("_") and not key.endswith("__"):
        found = table.get(key[:-1])
    return found


class Builder:
    """Translates the steps that the results need.

    Args:
        merged (Merged): the recording.
        opset (int): the version of ONNX's ops.
        names (dict): the names of parameters and buffers, by the identity of the tensor.
        custom (dict): translations that go before the table's, by op.
    """

    def __init__(self, merged: Merged, opset: int, names: dict[int, str], custom: dict[Any, Any]) -> None:
        self.merged, self.trace, self.names, self.custom = merged, merged.trace, names, custom
        self.graph = Graph(opset)
        self.vals: dict[int, Val] = {}
        self.graph.resolve = self.val
        self.graph.in_runs = merged.in_runs
        self.graph.taken.update(names.values())

    def input(self, number: int, name: str) -> None:
        """Names an input."""
        self.graph.taken.add(name)
        self.vals[number] = self._recorded(Val(name, self.trace.values[number].dtype, None), number)

    def build(self) -> None:
        """Adds the nodes of all steps that are needed."""
        needed = self._needed()
        for step in self.trace.steps:
            if any(n in needed for n in step.outputs) and not self._folded(step):
                self._step(step, needed)

    def _needed(self) -> set[int]:
        needed = set(self.trace.outputs)
        for step in reversed(self.trace.steps):
            if any(n in needed for n in step.outputs) and not self._folded(step):
                needed.update(refs(step))
                needed.update(n for view in self._views(step) for n in refs(view))
        return needed

    @staticmethod
    def _views(step: Step) -> list[Step]:
        return [view for view, _, _ in step.args[1]] if step.key == "@write" else []

    def _folded(self, step: Step) -> bool:
        if not step.constant:
            return False
        if step.key in _VIEWS or step.key in ("detach", "data.__get__"):
            of = [self.trace.values[n] for n in refs(step)]
            return not any(v.source == "outside" and id(v.origin) in self.names for v in of)
        return True

    def val(self, number: int) -> Val:
        """The value in the graph of a recorded value."""
        if number in self.vals:
            return self.vals[number]
        value = self.trace.values[number]
        tensor = self.merged.constant(number)
        if tensor is None:
            step = value.step
            made = "an input" if step is None else f"the result of '{step.key}' at {step.where}"
            raise OnnxExporterError(f"onnx.export: a size of {made} is needed before it can be computed")
        self.vals[number] = v = self._recorded(self._initializer(value, tensor), number)
        return v

    def _initializer(self, value: Value, tensor: Tensor) -> Val:
        name = None if value.origin is None else self.names.get(id(value.origin))
        if name is not None:
            self.graph.initializers[name] = tensor
            return Val(name, value.dtype, None, tensor)
        return self.graph.constant(tensor.detach().clone())

    def _recorded(self, v: Val, number: int) -> Val:
        """A value of the graph as a recorded one, whose shape is known."""
        new = Val(v.name, self.trace.values[number].dtype, list(self.merged.shapes[number]), v.tensor)
        new.number = number
        return new

    def _step(self, step: Step, needed: set[int]) -> None:
        g = self.graph
        g.key, g.where = step.key.rstrip("_") if not step.key.endswith("__") else step.key, step.where
        if step.key in table:
            g.key = step.key
        g.outs = [self._recorded(Val("", _C.float32, None), n) for n in step.outputs]
        results = self._write(step) if step.key == "@write" else self._translated(step)
        for number, place in zip(step.outputs, step.places):
            if place >= len(results):
                if number in needed:
                    g.unsupported("a value that it writes to an argument")
                continue
            found = results[place]
            kind = self.trace.values[number].dtype
            if found.dtype != kind:
                found = g.cast(found, kind)
            self.vals[number] = self._recorded(found, number)

    def _translated(self, step: Step) -> list[Val]:
        g = self.graph
        custom = self.custom.get(step.function) or self.custom.get(step.key.rstrip("_"))
        translate = custom or translation(step.key)
        if translate is None:
            raise UnsupportedOperatorError(step.key, g.opset, None, f" at {step.where}")
        args, kwargs = map_arguments(
            (step.args, step.kwargs), lambda v: self.val(v.number) if isinstance(v, Ref) else v
        )
        kwargs = {
            _OTHER_NAMES.get(k, k): v for k, v in kwargs.items() if not (k == "out" or k in _IGNORED and v is None)
        }
        try:
            results = translate(SymbolicGraph(g) if custom else g, *args, **kwargs)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise OnnxExporterError(
                f"onnx.export: '{step.key}' at {step.where}: these arguments have no translation: {error}"
            ) from error
        return list(results) if isinstance(results, (list, tuple)) else [results]

    def _write(self, step: Step) -> list[Val]:
        """The tensor that a view was taken of, after a write to the view."""
        root, views, value = self.val(step.args[0].number), step.args[1], self.val(step.args[2].number)

        def taken(v: Val) -> Val:
            for view, base, result in views:
                v = self._view(view, base, result, v)
            return v

        from ._translate.indexing import write_view

        g = self.graph
        outs, key = g.outs, g.key
        result = write_view(g, root, taken, value)
        g.outs, g.key = outs, key
        return [result]

    def _view(self, step: Step, base: int, result: int, v: Val) -> Val:
        """A view of another value than the one that it was taken of."""
        g = self.graph
        before = self.vals.get(base)
        stand_in = Val(v.name, v.dtype, list(self.merged.shapes[base]), None)
        stand_in.number = base
        self.vals[base] = stand_in
        g.key = step.key.rstrip("_") if not step.key.endswith("__") else step.key
        g.outs = []
        for n in step.outputs:
            out = Val("", v.dtype, list(self.merged.shapes[n]))
            out.number = n
            g.outs.append(out)
        found = self._translated(step)[step.places[step.outputs.index(result)]]
        if before is None:
            del self.vals[base]
        else:
            self.vals[base] = before
        return Val(found.name, v.dtype, list(self.merged.shapes[result]))


# Arguments without a meaning in a graph, where they are None.
_IGNORED = {"generator", "memory_format", "device", "layout", "pin_memory", "requires_grad", "dtype", "_stacklevel"}
