"""What a recording consists of: values, and the steps that make values of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .._base import Tensor, dtype

__all__ = ["Question", "Ref", "Step", "Trace", "Value", "map_arguments", "refs"]


class Value:
    """A tensor at one moment of a recorded run: what is written in place is another value.

    Attributes:
        number (int): its place in the trace; the same in each run of a program that does the same.
        shape (tuple): its sizes in this run.
        source (str): "input", "outside" (a parameter, a buffer or another tensor that was there before) or "step".
        tensor (Tensor, optional): the elements, where they do not depend on inputs.
        origin (Tensor, optional): the tensor from outside, whatever has been written to it since.
        depends (bool): whether they depend on inputs or are random.
    """

    __slots__ = ("depends", "dtype", "number", "origin", "shape", "source", "step", "tensor")

    def __init__(self, number: int, like: Tensor, source: str, tensor: Tensor | None, depends: bool) -> None:
        self.number, self.source, self.tensor, self.depends = number, source, tensor, depends
        self.origin = tensor if source == "outside" else None
        self.shape: tuple[int, ...] = tuple(like.shape)
        self.dtype: dtype = like.dtype
        self.step: Step | None = None


class Question(NamedTuple):
    """A comparison of a size, by the name of the method; `own` says that the program asked, not the library."""

    size: Any
    other: Any
    sign: str
    own: bool


class Ref:
    """A value in the place of a tensor among the arguments of a step."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Step:
    """A call: `key` names the op, `outputs` are the numbers of the values that it made, `where` is a line of the program.

    `places` says which of the tensors that the op returns each output is; one that it writes and does not return comes after those.
    """

    __slots__ = ("args", "constant", "function", "key", "kwargs", "outputs", "places", "where")

    def __init__(self, key: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: str) -> None:
        self.key, self.function, self.args, self.kwargs, self.where = key, function, args, kwargs, where
        self.outputs: list[int] = []
        self.places: list[int] = []
        self.constant = False


class Trace:
    """A recorded run."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.result: Any = None
        # Comparisons of sizes that the program made, by line, and reads of elements that depend on inputs.
        self.questions: dict[str, Any] = {}
        self.reads: dict[str, str] = {}

    def add(self, like: Tensor, source: str, tensor: Tensor | None = None, depends: bool = False) -> Value:
        """A new value."""
        value = Value(len(self.values), like, source, tensor, depends)
        self.values.append(value)
        return value


def map_arguments(value: Any, function: Callable[[Any], Any]) -> Any:
    """An argument with `function` applied to all that is not a list, tuple, dict or slice."""
    if isinstance(value, (list, tuple)):
        items = [map_arguments(v, function) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: map_arguments(v, function) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(map_arguments(v, function) for v in (value.start, value.stop, value.step)))
    return function(value)


def items(value: Any) -> Iterator[Any]:
    """The parts of an argument that are no containers."""
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from items(v)
    elif isinstance(value, dict):
        yield from items(list(value.values()))
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def refs(step: Step) -> list[int]:
    """The numbers of the values that a step takes."""
    return [v.number for v in items((step.args, step.kwargs)) if isinstance(v, Ref)]
