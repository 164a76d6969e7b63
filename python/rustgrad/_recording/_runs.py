"""Runs a model under the recorder: once as it was asked for, then with other sizes and other elements of the inputs."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from .. import _C
from .._base import Tensor
from ..compiler._watch import here as compiled
from ..utils import _pytree
from ._calls import CallRecorder
from ._errors import RecordingError
from ._sizes import watch
from ._trace import Trace

__all__ = ["Inputs", "is_exporting", "record", "runs", "tensors_of"]

_here = threading.local()


def is_exporting(kind: str | None = None) -> bool:
    """Whether this thread runs a model for an exporter, "onnx" or "export"."""
    return getattr(_here, "depth", 0) > 0 and kind in (None, _here.kind)


@contextlib.contextmanager
def _exporting(recorder: CallRecorder) -> Iterator[None]:
    _here.depth = getattr(_here, "depth", 0) + 1
    _here.kind = "export" if recorder.keeps_grad else "onnx"
    # A compiled function would run its plan, which nobody sees.
    compiled.disabled += 1
    try:
        yield
    finally:
        compiled.disabled -= 1
        _here.depth -= 1


def _parts(leaf: Any) -> Any:
    """What a container holds that no registry knows: a mapping, a dataclass, an output of transformers; None for another object."""
    if hasattr(leaf, "to_tuple"):
        return leaf.to_tuple()
    if isinstance(leaf, dict):
        return list(leaf.values())
    if hasattr(leaf, "__dataclass_fields__"):
        return [getattr(leaf, name) for name in leaf.__dataclass_fields__]
    return None


def _leaves(result: Any) -> Iterator[Any]:
    for leaf in _pytree.tree_leaves(result):
        parts = None if isinstance(leaf, Tensor) else _parts(leaf)
        if parts is None:
            yield leaf
        else:
            yield from _leaves(parts)


def tensors_of(result: Any) -> list[Tensor]:
    """The tensors of a result, in their order; also in dataclasses and mappings."""
    return [leaf for leaf in _leaves(result) if isinstance(leaf, Tensor)]


def left_out(result: Any) -> list[str]:
    """The names of the classes of objects in a result that are neither tensors nor plain."""
    plain = (Tensor, int, float, complex, str, bytes, type(None))
    return sorted({type(leaf).__name__ for leaf in _leaves(result) if not isinstance(leaf, plain)})


class Inputs:
    """The tensors among the arguments of a call, and the call with others in their place.

    `recorder` makes the recorder of a run, where sizes vary or do not.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        recorder: Callable[[bool], CallRecorder],
    ) -> None:
        self.model, self.recorder = model, recorder
        self.leaves, self.tree = _pytree.tree_flatten((args, kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        self.tensors = [self.leaves[i] for i in self.places]

    def call(self, tensors: list[Tensor]) -> Any:
        """Calls the model with these tensors."""
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors):
            leaves[i] = t
        args, kwargs = _pytree.tree_unflatten(leaves, self.tree)
        return self.model(*args, **kwargs)


def _resized(t: Tensor, sizes: dict[int, int]) -> Tensor:
    """A tensor of other sizes, with the elements of this one again and again."""
    for axis, n in sizes.items():
        old = t.shape[axis]
        if n != old:
            index = _C.ops["arange"](n, device=t.device) % max(old, 1)
            t = t.index_select(axis, index) if old else t.new_zeros([*t.shape[:axis], n, *t.shape[axis + 1 :]])
    return t


def _turned(t: Tensor) -> Tensor:
    """The elements of a tensor in another order, floats also changed a little."""
    t = t.flip(list(range(t.dim()))) if t.dim() else t
    return t * 0.875 if t.is_floating_point() else t


def record(inputs: Inputs, tensors: list[Tensor], sized: bool) -> Trace:
    """One run with these tensors. What it writes is undone."""
    recorder = inputs.recorder(sized)
    fresh = [t.detach().clone().requires_grad_(recorder.keeps_grad and t.requires_grad) for t in tensors]
    for t in fresh:
        recorder.input(t)
    random = _C._rng_states()
    try:
        with _exporting(recorder), _undone(inputs.model, recorder), _grad(recorder), watch(recorder.question), recorder:
            result = inputs.call(fresh)
        outputs = tensors_of(result)
        for t in outputs:
            recorder.output(t)
        recorder.trace.result = result
    finally:
        recorder.restore()
        _C._set_rng_states(*random)
    return recorder.trace


@contextlib.contextmanager
def _undone(model: Any, recorder: CallRecorder) -> Iterator[None]:
    """A block after which buffers that were bound to tensors computed from inputs are what they were.

    Others stay: a table that a model has made larger goes with numbers that it keeps beside it.
    """
    owner = model if hasattr(model, "modules") else getattr(model, "__self__", None)
    modules = list(owner.modules()) if hasattr(owner, "modules") else []
    before = [(m._buffers, dict(m._buffers)) for m in modules]
    try:
        yield
    finally:
        for now, was in before:
            for name, t in was.items():
                if now.get(name) is not t and recorder.depends(now.get(name)):
                    now[name] = t


@contextlib.contextmanager
def _grad(recorder: CallRecorder) -> Iterator[None]:
    before = _C.is_grad_enabled()
    _C._set_grad_enabled(before and recorder.keeps_grad)
    try:
        yield
    finally:
        _C._set_grad_enabled(before)


# How a size is changed for further runs, in the order in which that is tried: to sizes far apart, so that what is computed from
# them in steps (strides, blocks) differs too, and not all multiples; to multiples; to smaller ones, for sizes with a limit.
_CHANGES: list[list[Callable[[int], int]]] = [
    [lambda n: n + 1, lambda n: 2 * n + 1, lambda n: 3 * n + 2],
    [lambda n: 2 * n, lambda n: 3 * n, lambda n: 5 * n],
    [lambda n: n + 32, lambda n: n + 96, lambda n: n + 64],
    [lambda n: n // 2, lambda n: n // 4, lambda n: 3 * n // 4],
    [lambda n: n + 1, lambda n: n + 3, lambda n: n + 8],
    [lambda n: n - 1, lambda n: n - 3, lambda n: n - 2],
]
# For large sizes smaller ones, which take less time.
_LARGE = 64
_OF_LARGE: list[list[Callable[[int], int]]] = [
    [lambda n: n // 2 + 1, lambda n: 3 * n // 4 + 1, lambda n: 3 * n // 2 + 1],
    [lambda n: n // 2, lambda n: 3 * n // 2, lambda n: 2 * n],
]
_TRIES = 40


def _choices(sizes: dict[str, int], bounds: dict[str, tuple[int, int]]) -> Iterator[list[dict[str, int]]]:
    """Sets of sizes for the further runs, the likeliest first. No two of the sizes that vary are alike in all runs."""
    names = list(sizes)
    changes = {name: [*_OF_LARGE, *_CHANGES[2:]] if sizes[name] >= _LARGE else _CHANGES for name in names}
    for ways in sorted(itertools.product(range(len(_CHANGES)), repeat=min(len(names), 3)), key=sum):
        ways = (*ways, *[ways[0]] * (len(names) - len(ways)))
        chosen = [
            {name: changes[name][way][(run + i) % 3](sizes[name]) for i, (name, way) in enumerate(zip(names, ways))}
            for run in range(3)
        ]
        within = all(bounds[name][0] <= values[name] <= bounds[name][1] for values in chosen for name in names)
        if within and len({tuple(v[name] for v in chosen) for name in names}) == len(names):
            yield chosen
    # For narrow bounds what there is within them.
    pools = [_between(sizes[name], *bounds[name]) for name in names]
    if names and all(pools):
        yield [
            {name: pool[(run + i) % len(pool)] for i, (name, pool) in enumerate(zip(names, pools))} for run in range(3)
        ]


def _between(n: int, low: int, high: int) -> list[int]:
    """Sizes within bounds other than `n`."""
    high = min(high, 4 * n + 8)
    found = {low, high, (low + high) // 2, n + 1, n - 1, low + 1, high - 1}
    return sorted(v for v in found if low <= v <= high and v != n and v > 0)


def runs(
    inputs: Inputs,
    sizes: list[dict[int, str]],
    bounds: dict[str, tuple[int, int]],
    sets: int = 1,
    derived: Mapping[str, Callable[[Mapping[str, int]], int]] = MappingProxyType({}),
) -> list[Trace]:
    """Records the model as it is called, and again with other sizes and elements: three times for each of `sets`.

    `derived` computes sizes that go with others.

    Raises:
        RecordingError: the sizes that are to vary cannot: the model fails with all others that were tried.
    """
    first: dict[str, int] = {}
    for t, axes in zip(inputs.tensors, sizes):
        for axis, name in axes.items():
            if first.setdefault(name, t.shape[axis]) != t.shape[axis]:
                raise RecordingError(
                    f"the size '{name}' is {first[name]} in one input and {t.shape[axis]} in another; expected one size"
                )
    free = {name: n for name, n in first.items() if name not in derived}
    traces = [record(inputs, inputs.tensors, bool(first))]
    turned = [_turned(t) for t in inputs.tensors]
    if not first:
        # Elements that Python looked at may be such that others are refused; then there is nothing to compare with.
        with contextlib.suppress(Exception):
            traces.append(record(inputs, turned, False))
        return traces
    problem: BaseException | None = None
    for chosen in itertools.islice(_choices(free, bounds), _TRIES):
        for values in chosen:
            values.update({name: size(values) for name, size in derived.items()})
        try:
            more = [record(inputs, _of(t, sizes, s), True) for t, s in zip((inputs.tensors, turned, turned), chosen)]
        except (
            RuntimeError,
            ValueError,
            IndexError,
            AssertionError,
            TypeError,
            KeyError,
            NotImplementedError,
        ) as error:
            problem = problem or error
            continue
        traces += more
        sets -= 1
        if sets == 0:
            break
    if len(traces) > 1:
        return traces
    raise RecordingError(f"the model fails with other sizes than {first}, so they cannot vary: {problem}") from problem


def _of(tensors: list[Tensor], sizes: list[dict[int, str]], values: dict[str, int]) -> list[Tensor]:
    return [_resized(t, {axis: values[name] for axis, name in axes.items()}) for t, axes in zip(tensors, sizes)]
