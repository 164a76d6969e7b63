"""`export`: records runs of a module, compares them, and makes the graph."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

from .. import _C
from .._base import Tensor
from .._recording._errors import RecordingError
from .._recording._merge import Merged
from .._recording._runs import Inputs, record, runs
from .._recording._trace import Trace
from ..nn.modules.module import Module
from ..utils import _pytree
from ._build import GraphBuilder
from ._errors import DataDependent
from ._guards import Guards
from ._program import Program
from ._recorder import ExportRecorder
from ._shapes import Shapes, user_error
from .exported_program import ExportedProgram

__all__ = ["export_module"]


def export_module(
    module: Any, args: Any, kwargs: Any, dynamic_shapes: Any, preserved: tuple[str, ...] = ()
) -> ExportedProgram:
    """The exported program of a call of a module."""
    if not isinstance(module, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(module)}.")
    if not isinstance(args, tuple):
        raise user_error(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = dict(kwargs or {})
    args, kwargs = _distinct(args, kwargs)
    inspect.signature(module.forward).bind(*args, **kwargs)
    shapes = Shapes(module, args, kwargs, dynamic_shapes)
    recording = _Recording(module, args, kwargs, shapes)
    try:
        recording.resolve()
    except DataDependent as error:
        raise _data_dependent(error) from None
    except RecordingError as error:
        raise user_error(f"export: {error}") from error.__cause__
    builder = GraphBuilder(module, recording.merged, shapes, recording.groups, recording.recorders[0], recording.first)
    guards = Guards(recording.merged, builder, shapes, recording.groups)
    guards.check()
    return builder.program(args, kwargs, guards, preserved)


def _distinct(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with a tensor that is given twice as two."""
    seen: set[int] = set()

    def once(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) in seen:
            return leaf.detach().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
        return leaf

    return _pytree.tree_map(once, (args, kwargs))


def _data_dependent(error: DataDependent) -> Exception:
    from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    file, _, line = error.where.rpartition(":")
    import linecache

    code = linecache.getline(file, int(line)).strip() if line.isdigit() else ""
    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression: the program reads the elements of a tensor that depends on its inputs "
        f"('{error.key}'), and what it does then is not in a graph. Hint: use torch.where, torch.cond or other tensor ops, or make "
        f'the value an argument.\n\nThe following call raised this error:\n  File "{file}", line {line}\n    {code}\n'
        "\n\nThe error above occurred when calling torch.export.export. If you would like to view some more information about this "
        "error, and get a list of all other errors that may occur in your export call, you can replace your `export()` call with "
        "`draft_export()`."
    )


class _Recording:
    """Runs of a module, with as many sizes varying as its code allows."""

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Shapes) -> None:
        self.shapes = shapes
        modules = {id(m): name for name, m in module.named_modules()}
        self.recorders: list[ExportRecorder] = []

        def recorder(sized: bool) -> ExportRecorder:
            made = ExportRecorder(sized, modules, not self.recorders)
            self.recorders.append(made)
            return made

        self.inputs = Inputs(Program(module), args, kwargs, recorder)
        # The size that each one goes with; what is not there does not vary.
        self.groups: dict[str, str] = {}
        self.merged: Merged
        self.first: list[Trace] = []

    def resolve(self) -> None:
        """Finds which sizes vary together, and records. UserError where those that have to vary cannot."""
        names = list(self.shapes.symbols)
        free = [n for n in names if not self.shapes.symbols[n].derived]
        apart = {n: n for n in names}
        problem = self._try(apart)
        if problem is None or not names:
            if problem is not None:
                raise problem
            return
        together = self._together(free)
        if together != apart and self._try({**apart, **together}) is None:
            self._separate({**apart, **together})
            self._violations({})
            return
        fixed = {n: p for n in free if (p := self._try({n: n, **self._derived(n)})) is not None}
        pairs = {n: t for n, t in together.items() if n in fixed}
        # What fails alone may vary with another of the same size.
        for group in set(pairs.values()):
            members = {n: group for n in together if together[n] == group}
            if len(members) > 1 and self._try(members) is None:
                for n in members:
                    fixed.pop(n, None)
        rest = {n: together[n] for n in free if n not in fixed}
        rest.update({n: n for n in names if n not in free and self.shapes.symbols[n].derived[0] in rest})  # type: ignore[index]
        problem = self._try(rest)
        if problem is not None:
            raise problem
        self._separate(rest)
        self._violations(fixed)

    def _derived(self, root: str) -> dict[str, str]:
        return {n: n for n, s in self.shapes.symbols.items() if s.derived and s.derived[0] == root}

    def _together(self, names: list[str]) -> dict[str, str]:
        """Sizes that are alike in the example as one."""
        first: dict[int, str] = {}
        return {n: first.setdefault(self.shapes.value(self.shapes.symbols[n]), n) for n in names}

    def _separate(self, groups: dict[str, str]) -> None:
        """Takes apart again what need not be alike."""
        for name in [n for n, g in groups.items() if g != n]:
            trial = {**groups, name: name}
            if self._try(trial) is None:
                groups = trial
        if self._try(groups) is not None:
            raise RecordingError("two tries of the same sizes differ")

    def _try(self, groups: dict[str, str]) -> Exception | None:
        """Records with these sizes varying; returns what is in the way."""
        self.recorders.clear()
        bounds = {n: self._bounds(n, groups) for n in set(groups.values())}
        axes = self.shapes.axes(groups)
        derived = {n: f for n, f in self.shapes.derivations().items() if n in groups}
        try:
            merged = self._compared(axes, bounds, derived)
        except DataDependent:
            raise
        except RecordingError as error:
            return error
        self.merged, self.groups = merged, groups
        return None

    def _compared(self, axes: Any, bounds: Any, derived: Any) -> Merged:
        def recorded(sets: int) -> Merged:
            self.recorders.clear()
            self.first = runs(self.inputs, axes, bounds, sets, derived)
            if self.recorders[0].loose:
                self._vary(any(axes))
            return Merged(self.first, _symbols(self.first[0], axes))

        try:
            merged = recorded(1)
        except RecordingError:
            # What a model keeps for later calls (a table, a mask) is there the second time.
            merged = recorded(1)
        # Where a formula was found that gives a size in these runs, others have to agree.
        return recorded(2) if merged.fitted else merged

    def _vary(self, sized: bool) -> None:
        """Adds runs where elements decide on sizes: with elements of the example again and again, and with zeros among them."""
        for change in (lambda t: _repeated(t, 2), lambda t: _repeated(t, 3), _with_zeros):
            with contextlib.suppress(RuntimeError, ValueError, IndexError, ZeroDivisionError):
                again = [change(t) for t in self.inputs.tensors]
                self.first.append(record(self.inputs, again, sized))

    def _bounds(self, name: str, groups: dict[str, str]) -> tuple[int, int]:
        members = [self.shapes.symbols[n] for n, g in groups.items() if g == name]
        low = max(max(s.low, 2) for s in members)
        return low, min(10**9 if s.high is None else s.high for s in members)

    def _violations(self, fixed: dict[str, Any]) -> None:
        """UserError where sizes are constants, or alike, that the caller wants otherwise."""
        lines, fixes, names = [], [], []
        for name in fixed:
            symbol = self.shapes.symbols[name]
            if symbol.kind == "AUTO":
                continue
            size = self.shapes.value(symbol)
            shown = name if symbol.kind == "named" else self.shapes.source(symbol.places[0])
            names.append(shown)
            lines.append(
                f"  - You marked {shown} as dynamic but your code specialized it to be a constant ({size}). If you're using "
                "mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either "
                "Dim.STATIC or Dim.AUTO."
            )
            if symbol.kind == "named":
                fixes.append(f"  {name} = {size}")
        for name, group in self.groups.items():
            one, two = self.shapes.symbols[name], self.shapes.symbols[group]
            if name != group and one.kind == two.kind == "named":
                names.append(name)
                lines.append(
                    f"  - The values of {name} = {self.shapes.source(one.places[0])} and {group} = "
                    f"{self.shapes.source(two.places[0])} must always be equal."
                )
                fixes.append(f"  {name} = {group}")
        if lines:
            raise user_error(violation(names, lines, fixes))


def _repeated(t: Tensor, times: int) -> Tensor:
    flat = t.detach().reshape(-1)
    index = _C.ops["arange"](flat.numel(), device=t.device) // times
    return flat.index_select(0, index).reshape(t.shape).requires_grad_(t.requires_grad)


def _with_zeros(t: Tensor) -> Tensor:
    flat = t.detach().reshape(-1)
    kept = _C.ops["arange"](flat.numel(), device=t.device) % 3 != 1
    return flat.where(kept, flat.new_zeros(())).reshape(t.shape).requires_grad_(t.requires_grad)


def violation(names: list[str], lines: list[str], fixes: list[str]) -> str:
    """The text of an error about sizes that cannot vary as asked."""
    suggested = ["Suggested fixes:", *fixes] if fixes else []
    head = f'Constraints violated ({", ".join(names)})! For more information, run with TORCH_LOGS="+dynamic".'
    return "\n".join([head, *lines, *suggested])


def _symbols(trace: Trace, axes: list[dict[int, str]]) -> dict[str, tuple[int, int]]:
    """The sizes that vary by name, each with the input and the dimension where it is first found."""
    found: dict[str, tuple[int, int]] = {}
    for number, by_axis in zip(trace.inputs, axes):
        for axis, name in by_axis.items():
            found.setdefault(name, (number, axis))
    return found
