"""`torch.export.dynamic_shapes`: which sizes of the arguments may vary, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._base import Tensor
from ..utils import _pytree

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "Dim",
    "ShapesCollection",
    "dims",
    "refine_dynamic_shapes_from_suggested_fixes",
]


class Constraint:
    """A bound on a size of a tensor: what `dynamic_shapes` becomes."""

    def __init__(self, name: str, source: str, low: int, high: int | None) -> None:
        self.name, self.source, self.low, self.high = name, source, low, high


class _DimHint:
    """What is said of a dimension without a name: `AUTO` varies where the model lets it, `DYNAMIC` has to, `STATIC` does not."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """The same with bounds."""
        if min is not None and min < 0 or max is not None and max < 0:
            raise AssertionError(f"bounds must not be negative, got min={min}, max={max}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must not be larger than max, got min={min}, max={max}")
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        parts = [self.type]
        parts += [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join(parts)})"


class Dim:
    """A dimension whose size may vary: a name with bounds. `AUTO`, `DYNAMIC` and `STATIC` stand for one without a name.

    `2 * dim + 1` is one whose size goes with it.

    Args:
        name (str): an identifier; dimensions of one name have one size.
        min, max (int, optional): bounds of the size.

    Raises:
        AssertionError: a name that is none, or bounds in the wrong order.
    """

    AUTO, DYNAMIC, STATIC = _DimHint("AUTO"), _DimHint("DYNAMIC"), _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.min: int = 0 if min is None else min
        self.max: int | None = max
        if max is not None and max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        if not str(name).isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name

    def __repr__(self) -> str:
        low = "" if self.min == 2 else f", min={self.min}"
        high = "" if self.max is None else f", max={self.max}"
        return f"Dim('{self.__name__}'{low}{high})"

    def __add__(self, other: int) -> Dim:
        return _derived(self, 1, _whole(self, "+", other))

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return _derived(self, 1, -_whole(self, "-", other))

    def __rsub__(self, other: int) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. Only increasing linear operations with integer coefficients are supported."
        )

    def __mul__(self, other: int) -> Dim:
        if _whole(self, "*", other) <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {self.__name__} by {other}, where a positive integer was expected. Only increasing "
                "linear operations with integer coefficients are supported."
            )
        return _derived(self, other, 0)

    __rmul__ = __mul__


def _whole(dim: Dim, sign: str, other: Any) -> int:
    if type(other) is not int:
        words = {"+": ("add", "to"), "-": ("subtract", "from"), "*": ("multiply", "with")}
        raise NotImplementedError(
            f"Attempted to {words[sign][0]} {other} {words[sign][1]} {dim.__name__}, where an integer was expected. (Only increasing "
            "linear operations with integer coefficients are supported.)"
        )
    return other


class _DerivedDim(Dim):
    """`factor * root + offset`."""

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        self.root, self.factor, self.offset = root, factor, offset
        self.min = factor * root.min + offset
        self.max = None if root.max is None else factor * root.max + offset
        name = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        self.__name__ = name + (f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else "")

    def __repr__(self) -> str:
        return self.__name__


def _derived(dim: Dim, factor: int, offset: int) -> Dim:
    if isinstance(dim, _DerivedDim):
        return _DerivedDim(dim.root, dim.factor * factor, dim.offset * factor + offset)
    return _DerivedDim(dim, factor, offset)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several `Dim` with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """`dynamic_shapes` by tensor: `shapes[x] = {0: Dim("batch")}`."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._kept: list[Any] = []

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, (Tensor, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-int type {type(t)}")
        if id(t) in self._shapes and self._shapes[id(t)] != shape:
            raise AssertionError("Shapes assigned to tensor do not match")
        self._shapes[id(t)] = shape
        self._kept.append(t)

    def __getitem__(self, t: Any) -> Any:
        if id(t) not in self._shapes:
            self[t] = {}
        return self._shapes[id(t)]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The argument `dynamic_shapes` for a call.

        Raises:
            ValueError: a tensor that is no argument.
        """
        found: set[int] = set()

        def shape_of(leaf: Any) -> Any:
            if id(leaf) in self._shapes:
                found.add(id(leaf))
                return self._shapes[id(leaf)]
            return None

        shapes = _pytree.tree_map(shape_of, combined_args(m, args, kwargs or {}))
        if found != set(self._shapes):
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied."
            )
        return shapes


class AdditionalInputs:
    """Further calls of a model: sizes that differ among them vary.

    `dynamic_shapes` gives the argument of `export`, `verify` calls an exported program with each of them.
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Adds a call.

        Raises:
            AssertionError: arguments that are no tuple.
        """
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, dict(kwargs or {})))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The argument `dynamic_shapes` for a call.

        Raises:
            ValueError: values that are no tensors and differ among the calls.
        """
        calls = [(args, kwargs or {}), *self._examples]
        columns = [_pytree.tree_leaves(combined_args(m, *call)) for call in calls]
        spec = _pytree.tree_structure(combined_args(m, args, kwargs or {}))

        def shape_of(leaves: tuple[Any, ...]) -> Any:
            if isinstance(leaves[0], Tensor):
                return tuple(Dim.DYNAMIC if len(set(sizes)) > 1 else None for sizes in zip(*(t.shape for t in leaves)))
            if any(leaf != leaves[0] for leaf in leaves[1:]):
                raise ValueError(f"The following inputs were found to have differing values: {leaves}")
            return None

        return spec.unflatten([shape_of(leaves) for leaves in zip(*columns)])

    def verify(self, ep: Any) -> None:
        """Calls an exported program with each of the calls, which raises what the program raises."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def relaxed(m: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Any:
    """`dynamic_shapes` with sizes that vary where they can."""
    if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        shapes = shapes.dynamic_shapes(m, args, kwargs)

    def walk(spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return {k: walk(v) for k, v in spec.items()}
        if isinstance(spec, (list, tuple)):
            return type(spec)(map(walk, spec))
        return Dim.AUTO if isinstance(spec, Dim) or spec is Dim.DYNAMIC else spec

    return walk(shapes)


def combined_args(m: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the names of the parameters of `forward`."""
    import inspect

    forward = m.forward if hasattr(m, "forward") else m
    return dict(inspect.signature(forward).bind(*args, **kwargs).arguments)


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """`dynamic_shapes` with the suggestions that the text of an error makes: "b = a", "a = 3", "a = Dim('a', min=3)".

    Raises:
        RuntimeError: the text has no suggestions.
    """
    import re

    _, found, fixes = msg.partition("Suggested fixes:")
    if not found:
        raise RuntimeError("Suggested fixes not found in the error message")
    named: dict[str, Any] = {}
    for line in fixes.split("\n"):
        match = re.fullmatch(r"\s*(\w+) = (.+)", line)
        if match is None:
            continue
        name, value = match.groups()
        bounds = re.fullmatch(r"Dim\('(\w+)'(?:, min=(\d+))?(?:, max=(\d+))?\)", value)
        if bounds:
            low, high = bounds.group(2), bounds.group(3)
            named[name] = Dim(name, min=int(low) if low else None, max=int(high) if high else None)
        elif value.isdigit():
            named[name] = int(value)
        elif value.isidentifier():
            named[name] = value
    known = {d.__name__: d for d in _pytree.tree_leaves(dynamic_shapes) if isinstance(d, Dim)}

    def refined(dim: Any) -> Any:
        new = named.get(dim.__name__, dim) if isinstance(dim, Dim) else dim
        return named.get(new, known.get(new, dim)) if isinstance(new, str) and isinstance(dim, Dim) else new

    def walk(spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return {k: walk(v) for k, v in spec.items()}
        return type(spec)(map(walk, spec)) if isinstance(spec, (list, tuple)) else refined(spec)

    return walk(dynamic_shapes)
