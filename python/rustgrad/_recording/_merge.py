"""Compares recorded runs of one program, with other sizes and other elements, and finds what depends on them.

What differs between runs has to be a size that the graph can compute. Anything else that differs, an op, a number, the elements
of a tensor that is no result of a recorded op, means that one recording does not stand for the program: an error names it.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

from .. import _C
from .._base import Tensor
from ..jit import TracerWarning
from ._errors import RecordingError
from ._sizes import SymInt, evaluate, key_of, leaves, rebuilt
from ._trace import Ref, Step, Trace, items, refs

__all__ = ["BY_ELEMENTS", "Merged"]

# Ops whose results have sizes that elements decide on.
BY_ELEMENTS = frozenset(
    """nonzero nonzero_numpy masked_select unique _unique2 unique_dim unique_consecutive repeat_interleave bincount argwhere
    combinations""".split()
)


class Merged:
    """The first run, with the sizes that vary as `SymInt` in its arguments and shapes.

    Args:
        traces (list): the runs; the first one becomes the graph.
        symbols (dict): names of sizes that vary, with the (input, axis) where each is first found.
    """

    def __init__(self, traces: list[Trace], symbols: dict[str, tuple[int, int]]) -> None:
        self.traces, self.trace = traces, traces[0]
        self.symbols = symbols
        self.fitted = False
        self._check_structure()
        self.shapes = [self._shape(i) for i in range(len(self.trace.values))]
        for steps in zip(*(t.steps for t in traces)):
            self._step(steps)

    # --- shapes

    def _shape(self, number: int) -> list[int]:
        every = [t.values[number].shape for t in self.traces]
        if len({len(s) for s in every}) > 1:
            raise RecordingError(f"{self._made(number)}: its rank depends on the sizes of the inputs")
        return [self._size(number, axis, list(n)) for axis, n in enumerate(zip(*every))]

    def _size(self, number: int, axis: int, found: list[int]) -> int:
        if len(set(found)) == 1:
            return found[0]
        value = self.trace.values[number]
        # A size that is that of an input in all runs is that of the input, unless elements decide on it.
        if value.step is None or not (value.step.key in BY_ELEMENTS or self.takes_mask(value.step)):
            for at, along in self.symbols.values():
                if at <= number and [t.values[at].shape[along] for t in self.traces] == found:
                    return SymInt(found[0], ("dim", at, along))
        return SymInt(found[0], ("dim", number, axis))

    def takes_mask(self, step: Step) -> bool:
        """Whether an index may be a mask."""
        return step.key in ("__getitem__", "index") and any(
            self.trace.values[n].dtype in (_C.bool, _C.uint8) for n in refs(step)[1:]
        )

    def in_runs(self, number: Any) -> list[int]:
        """What a size is in each of the runs."""
        return [evaluate(number, lambda v, axis: t.values[v].shape[axis]) for t in self.traces]  # noqa: B023

    def _made(self, number: int) -> str:
        step = self.trace.values[number].step
        return f"input {number}" if step is None else f"'{step.key}' at {step.where}"

    def is_dynamic(self, number: Any) -> bool:
        """Whether a number is computed from sizes that differ between the runs."""
        return any(isinstance(self.shapes[value][axis], SymInt) for value, axis in leaves(number))

    def name_of(self, number: int, axis: int) -> str | None:
        """The name of the varying size that this one is."""
        size = self.shapes[number][axis]
        found = (name for name, at in self.symbols.items() if isinstance(size, SymInt) and size.expr == ("dim", *at))
        return next(found, None)

    # --- steps

    def _check_structure(self) -> None:
        for other in self.traces[1:]:
            for a, b in zip(self.trace.steps, other.steps):
                if a.key != b.key or len(a.outputs) != len(b.outputs):
                    self._differs(a, f"in another run it is '{b.key}' with {len(b.outputs)} results")
            if len(self.trace.steps) != len(other.steps):
                last = max(self.trace.steps, other.steps, key=len)[min(len(self.trace.steps), len(other.steps))]
                self._differs(last, "the program runs more ops in one run than in another")
            if len(self.trace.values) != len(other.values) or self.trace.outputs != other.outputs:
                raise RecordingError("two runs of the model computed different results")

    def _differs(self, step: Step, what: str) -> None:
        causes = {**self.trace.reads, **{w: "a comparison of sizes" for w in self.trace.questions}}
        seen = "".join(f" The program looks at values at {where} ({how})." for where, how in list(causes.items())[:3])
        raise RecordingError(
            f"the program depends on the sizes or the elements of its inputs: '{step.key}' at {step.where}: {what}."
            f"{seen} Hint: loops and branches in Python are recorded as they ran; write them with tensor ops, or make the size static."
        )

    def _step(self, steps: tuple[Step, ...]) -> None:
        first = steps[0]
        if len({len(s.args) for s in steps}) > 1:
            self._differs(first, "the number of its arguments differs")
        args = [self._merge(first, list(v)) for v in zip(*(s.args for s in steps))]
        names = [list(s.kwargs) for s in steps]
        if any(n != names[0] for n in names):
            self._differs(first, "its keyword arguments differ")
        first.kwargs = {k: self._merge(first, [s.kwargs[k] for s in steps]) for k in names[0]}
        first.args = tuple(args)
        if first.key != "@write":
            known = all(self._is_constant(n) for n in refs(first))
            sized = any(type(v) is SymInt for v in items((first.args, first.kwargs)))
            kept = all(self.trace.values[n].tensor is not None for n in first.outputs)
            first.constant = known and kept and not sized
        else:
            root = self.trace.values[first.outputs[0]]
            first.constant = root.tensor is not None and all(self._is_constant(n) for n in refs(first))

    def _is_constant(self, number: int) -> bool:
        value = self.trace.values[number]
        return value.source == "outside" or (value.step is not None and value.step.constant)

    def constant(self, number: int) -> Tensor | None:
        """The elements of a value that depends neither on inputs nor on sizes."""
        return self.trace.values[number].tensor if self._is_constant(number) else None

    def _merge(self, step: Step, found: list[Any]) -> Any:
        """An argument of a step in the runs, as one."""
        a = found[0]
        if isinstance(a, Step):
            return a  # a view, which has been compared as a step
        if isinstance(a, (list, tuple)):
            if any(not isinstance(b, (list, tuple)) or len(b) != len(a) for b in found):
                self._differs(step, "the length of a list that it is given differs")
            merged = [self._merge(step, list(part)) for part in zip(*found)]
            return merged if isinstance(a, list) else tuple(merged)
        if isinstance(a, dict):
            return {k: self._merge(step, [b[k] for b in found]) for k in a}
        if isinstance(a, slice):
            parts = [[b.start, b.stop, b.step] if isinstance(b, slice) else [] for b in found]
            return slice(*self._merge(step, parts))
        if isinstance(a, Ref):
            return self._same_value(step, a, found)
        if isinstance(a, int) and not isinstance(a, bool):
            return self._number(step, found)
        if any(type(b) is not type(a) for b in found) or any(b != a and (b == b or a == a) for b in found[1:]):
            self._differs(step, f"an argument is {a!r} in one run and {found[-1]!r} in another")
        return a

    def _same_value(self, step: Step, a: Ref, found: list[Any]) -> Ref:
        if any(not isinstance(b, Ref) or b.number != a.number for b in found):
            self._differs(step, "it takes other tensors")
        tensors = [t.values[a.number] for t in self.traces]
        if tensors[0].source == "outside":
            for b in tensors[1:]:
                if not _equal(tensors[0].tensor, b.tensor):
                    self._differs(
                        step, "a tensor that it takes was made outside of recorded ops, from what the inputs are"
                    )
        return a

    def _number(self, step: Step, found: list[Any]) -> int:
        a, values = found[0], [int(b) if isinstance(b, int) else b for b in found]
        if isinstance(a, SymInt) and self.is_dynamic(a):
            for trace, value in zip(self.traces, values):
                if evaluate(a, lambda v, axis: trace.values[v].shape[axis]) != value:  # noqa: B023
                    break
            else:
                return rebuilt(a, lambda v, axis: self.shapes[v][axis])
        if all(value == values[0] for value in values):
            return values[0]
        fit = self._fit(step, values)
        if fit is None:
            self._differs(step, f"a size is {values}, and how it depends on the sizes of tensors is not seen")
        assert fit is not None
        return fit

    def _fit(self, step: Step, values: list[int]) -> SymInt | None:
        """A number that differs, as a size of an argument, or as `a * size // b + c` of a size that varies."""
        self.fitted = True
        for number in refs(step):
            for axis, size in enumerate(self.shapes[number]):
                if isinstance(size, SymInt) and [t.values[number].shape[axis] for t in self.traces] == values:
                    return size
        for value, axis in self.symbols.values():
            sizes = [t.values[value].shape[axis] for t in self.traces]
            size = SymInt(sizes[0], ("dim", value, axis))
            pairs = [(i, j) for i in range(len(sizes)) for j in range(i) if sizes[i] != sizes[j]]
            slopes = {Fraction(values[i] - values[j], sizes[i] - sizes[j]).limit_denominator(64) for i, j in pairs}
            for slope in sorted(slopes | {Fraction(1, d) for d in (2, 4, 8, 16, 32)}):
                p, q = slope.numerator, slope.denominator
                for offset in range(q):
                    c = values[0] - (sizes[0] * p + offset) // q
                    if [(n * p + offset) // q + c for n in sizes] == values:
                        return (size * p + offset) // q + c if q > 1 else size * p + c
        return None

    def _may_change(self, size: Any, other: Any) -> bool:
        """Whether the answer to a comparison may be another one for other sizes; none is expected to be zero."""
        a, b = (rebuilt(n, lambda v, axis: self.shapes[v][axis]) if isinstance(n, int) else n for n in (size, other))
        return (
            (isinstance(a, SymInt) or isinstance(b, SymInt))
            and key_of(a) != key_of(b)
            and other is not None
            and int(b) != 0
        )

    def warn(self, name: str) -> None:
        """Warns, under the name of the exporter, of what Python has decided from elements and sizes."""
        for where, how in self.trace.reads.items():
            warnings.warn(
                f"{name}: '{how}' at {where} reads the elements of a tensor; what Python does with them is a constant of "
                "the exported model",
                TracerWarning,
                stacklevel=5,
            )
        for where, asked in self.trace.questions.items():
            if any(self._may_change(size, other) for size, other, *_ in asked):
                warnings.warn(
                    f"{name}: at {where} the program compares a size that varies; the exported model holds for sizes for "
                    "which the answer is the same",
                    TracerWarning,
                    stacklevel=5,
                )


def _equal(a: Tensor | None, b: Tensor | None) -> bool:
    if a is b:
        return True
    if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = a.detach() == b.detach()
    if a.is_floating_point():
        same |= (a.detach() != a.detach()) & (b.detach() != b.detach())
    return bool(same.all())
