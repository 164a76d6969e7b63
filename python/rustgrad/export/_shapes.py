"""Which sizes of a call's tensors vary: `dynamic_shapes`, argument by argument."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .._base import Tensor
from .._dynamo.exc import UserError
from ..utils import _pytree
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _DerivedDim, _DimHint, combined_args

__all__ = ["Leaf", "Shapes", "Symbol", "leaves_of", "user_error"]

_TAIL = (
    "\n\nThe error above occurred when calling torch.export.export. If you would like to view some more information about this error, "
    "and get a list of all other errors that may occur in your export call, you can replace your `export()` call with "
    "`draft_export()`."
)
_MORE = "For more information about this error, see: https://pytorch.org/docs/main/generated/exportdb/index.html#dynamic-shapes-validation"


def user_error(text: str) -> UserError:
    """A mistake of the caller, with the sentence that ends such errors."""
    return UserError(text + _TAIL)


class Leaf:
    """A value among the arguments: its name as a placeholder, the expression that leads to it, and the value."""

    def __init__(self, name: str, source: str, shown: str, value: Any) -> None:
        self.name, self.source, self.shown, self.value = name, source, shown, value


def leaves_of(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Leaf]:
    """The values among the arguments of a call, in the order in which containers are taken apart."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "args")
    named = {p.name for p in parameters}
    more = next((p.name for p in parameters if p.kind == p.VAR_KEYWORD), "kwargs")
    found: list[Leaf] = []
    for i, value in enumerate(args):
        if i < len(positional):
            found += _under(value, positional[i], f"L['{positional[i]}']", positional[i])
        else:
            at = i - len(positional)
            found += _under(value, f"{rest}_{at}", f"L['{rest}'][{at}]", f"{rest}[{at}]")
    for key, value in kwargs.items():
        source = f"L['{key}']" if key in named else f"L['{more}']['{key}']"
        found += _under(value, key, source, key if key in named else f"{more}['{key}']")
    return found


def _under(value: Any, name: str, source: str, shown: str) -> list[Leaf]:
    found = []
    for path, leaf in _pytree.tree_leaves_with_path(value):
        keys = [getattr(k, "key", getattr(k, "idx", getattr(k, "name", k))) for k in path]
        text = _pytree.keystr(path)
        found.append(Leaf("_".join([name, *map(str, keys)]), source + text, shown + text, leaf))
    return found


class Symbol:
    """A size that varies.

    Attributes:
        name (str): of a `Dim`, or one made up.
        kind (str): "named", "AUTO" or "DYNAMIC".
        places (list): the (number of a tensor, axis) that have it.
        low, high (int): its bounds; `high` is None without one.
        derived (tuple, optional): (name of the root, factor, offset).
    """

    def __init__(self, name: str, kind: str, low: int, high: int | None) -> None:
        self.name, self.kind, self.low, self.high = name, kind, low, high
        self.places: list[tuple[int, int]] = []
        self.derived: tuple[str, int, int] | None = None


class Shapes:
    """The sizes that vary among the tensors of a call."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], given: Any) -> None:
        self.leaves = leaves_of(module, args, kwargs)
        self.tensors = [leaf for leaf in self.leaves if isinstance(leaf.value, Tensor)]
        self.symbols: dict[str, Symbol] = {}
        self.roots: dict[str, Dim] = {}
        if isinstance(given, (ShapesCollection, AdditionalInputs)):
            given = given.dynamic_shapes(module, args, kwargs)
        if given:
            self._take(given, combined_args(module, args, kwargs))
        self._check()

    # --- reading

    def _take(self, given: Any, combined: dict[str, Any]) -> None:
        if isinstance(given, Mapping):
            if list(given) != list(combined) and set(given) != set(combined):
                raise user_error(
                    "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                    f"{list(combined)} of `inputs`, but here they are {list(given)}. Alternatively, you could also ignore arg names "
                    f"entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`. {_MORE}"
                )
            specs = [given[name] for name in combined]
        elif isinstance(given, (list, tuple)):
            specs = list(given)
            if len(specs) != len(combined):
                self._mismatch(
                    "inputs", f"`inputs` has {len(combined)} elements, but `dynamic_shapes` has {len(specs)} elements"
                )
        else:
            raise user_error(f"Expected `dynamic_shapes` to be a dict, list or tuple, got {type(given)}")
        order = {id(leaf.value): i for i, leaf in enumerate(self.tensors)}
        for i, (value, spec) in enumerate(zip(combined.values(), specs)):
            at = f"['{list(combined)[i]}']" if isinstance(given, Mapping) else f"[{i}]"
            self._walk(value, spec, at, order)

    def _mismatch(self, where: str, what: str) -> None:
        raise user_error(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {what}\n{_MORE}")

    def _walk(self, value: Any, spec: Any, path: str, order: dict[int, int]) -> None:
        if isinstance(value, Tensor):
            self._tensor(value, spec, path, order[id(value)])
            return
        if spec is None:
            return
        kind = _pytree.node_type(value)
        if kind not in _pytree.SUPPORTED_NODES:
            if spec is not None and spec != {}:
                raise user_error(
                    f"Cannot associate shape {spec} specified at `dynamic_shapes{path}` to non-tensor type {type(value)} at "
                    f"`inputs{path}` (expected None)\n{_MORE}"
                )
            return
        children, _ = _pytree.SUPPORTED_NODES[kind].flatten_fn(value)
        if isinstance(value, Mapping):
            if not isinstance(spec, Mapping) or set(spec) != set(value):
                keys = list(spec) if isinstance(spec, Mapping) else spec
                self._mismatch(path, f"`inputs{path}` has keys {list(value)}, but `dynamic_shapes{path}` has {keys}")
            for key in value:
                self._walk(value[key], spec[key], f"{path}['{key}']", order)
            return
        parts = list(spec) if isinstance(spec, (list, tuple)) else None
        if parts is None and type(spec) is kind:
            parts = list(_pytree.SUPPORTED_NODES[kind].flatten_fn(spec)[0])
        if parts is None or len(parts) != len(children):
            count = "no list" if parts is None else f"{len(parts)} elements"
            self._mismatch(path, f"`inputs{path}` has {len(children)} elements, but `dynamic_shapes{path}` has {count}")
        for i, (child, part) in enumerate(zip(children, parts or ())):
            self._walk(child, part, f"{path}[{i}]", order)

    def _tensor(self, value: Tensor, spec: Any, path: str, number: int) -> None:
        if spec is None:
            return
        if isinstance(spec, Mapping):
            dims = dict(spec)
        elif isinstance(spec, (list, tuple)):
            if len(spec) != value.dim():
                raise user_error(
                    f"Expected dynamic shape spec {spec} specified at `dynamic_shapes{path}` to have the same length as the actual "
                    f"tensor shape {value.shape} (expected {value.dim()}, but got {len(spec)} instead)\n{_MORE}"
                )
            dims = dict(enumerate(spec))
        else:
            raise user_error(
                f"Unexpected input tensor shape {spec} specified at `dynamic_shapes{path}` (expected either a list/tuple of dimensions, "
                f"or a dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or "
                f"Dim.DYNAMIC)\n{_MORE}"
            )
        for axis, dim in dims.items():
            if not isinstance(axis, int) or not -value.dim() <= axis < value.dim():
                raise IndexError("list assignment index out of range")
            self._dim(value, spec, path, number, axis % value.dim(), dim)

    def _dim(self, value: Tensor, spec: Any, path: str, number: int, axis: int, dim: Any) -> None:
        size = value.shape[axis]
        if isinstance(dim, int) and not isinstance(dim, bool):
            if dim != size:
                raise user_error(
                    f"Static shape constraint of {dim} does not match input size of {size}, for {self.tensors[number].source}.size()[{axis}]"
                )
            return
        if isinstance(dim, Dim):
            self._named(dim, number, axis)
        elif isinstance(dim, _DimHint):
            if dim.type == "STATIC" or (dim.type == "AUTO" and size < 2):
                return
            symbol = Symbol(f"{self.tensors[number].name}_{axis}_", dim.type, dim.min or 2, dim.max)
            symbol.places.append((number, axis))
            self.symbols[symbol.name] = symbol
        elif dim is not None:
            raise user_error(
                f"Unexpected dimension mapped to index {axis} in input tensor shape {spec} specified at `dynamic_shapes{path}` (expected "
                f"None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got {dim!r} instead)\n{_MORE}"
            )

    def _named(self, dim: Dim, number: int, axis: int) -> None:
        name = dim.__name__
        symbol = self.symbols.get(name)
        if symbol is None:
            symbol = self.symbols[name] = Symbol(name, "named", dim.min, dim.max)
            if isinstance(dim, _DerivedDim):
                symbol.derived = (dim.root.__name__, dim.factor, dim.offset)
                self.roots.setdefault(dim.root.__name__, dim.root)
        elif (symbol.low, symbol.high) != (dim.min, dim.max):
            raise user_error(f"Found different definitions Dim('{name}') for the same symbolic dimension {dim!r}!")
        symbol.places.append((number, axis))

    def _check(self) -> None:
        from ..fx.experimental.symbolic_shapes import ConstraintViolationError

        for name, root in self.roots.items():
            if name not in self.symbols:
                self.symbols[name] = Symbol(name, "named", root.min, root.max)
        for symbol in self.symbols.values():
            sizes = {self.size(place) for place in symbol.places}
            if len(sizes) > 1:
                first, *rest = [f"{self.source(p)} = {self.size(p)}" for p in symbol.places]
                raise user_error(
                    f"Constraints violated ({symbol.name})! The sizes of dimension '{symbol.name}' differ: {first}, {', '.join(rest)}"
                )
            for size in sizes:
                if size < symbol.low or (symbol.high is not None and size > symbol.high):
                    high = "int_oo" if symbol.high is None else symbol.high
                    raise ConstraintViolationError(f"{size} not in range [{symbol.low}, {high}]{_TAIL}")

    # --- asking

    def size(self, place: tuple[int, int]) -> int:
        """The size at a place in the example."""
        return int(self.tensors[place[0]].value.shape[place[1]])

    def source(self, place: tuple[int, int]) -> str:
        """The expression of a size."""
        return f"{self.tensors[place[0]].source}.size()[{place[1]}]"

    def value(self, symbol: Symbol) -> int:
        """The example's size."""
        if symbol.places:
            return self.size(symbol.places[0])
        for other in self.symbols.values():
            if other.derived and other.derived[0] == symbol.name:
                return (self.value(other) - other.derived[2]) // other.derived[1]
        raise user_error(f"Dim '{symbol.name}' is the size of no tensor")

    def axes(self, of: Mapping[str, str]) -> list[dict[int, str]]:
        """{axis: name} for each tensor, where `of` gives the symbol that one goes with; those that it lacks are static."""
        found: list[dict[int, str]] = [{} for _ in self.tensors]
        for name, symbol in self.symbols.items():
            if name in of:
                for number, axis in symbol.places:
                    found[number][axis] = of[name]
        return found

    def derivations(self) -> dict[str, Callable[[Mapping[str, int]], int]]:
        """How sizes that go with others are computed."""
        found: dict[str, Callable[[Mapping[str, int]], int]] = {}
        for symbol in self.symbols.values():
            if symbol.derived:
                root, factor, offset = symbol.derived
                found[symbol.name] = lambda v, root=root, factor=factor, offset=offset: factor * v[root] + offset
        return found


def symbol_names(sources: list[str]) -> list[str]:
    """Names of symbols, which PyTorch takes from the expressions of their sizes."""
    taken: set[int] = set()
    names = []
    for source in sources:
        number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
        while number in taken:
            number += 1
        taken.add(number)
        names.append(f"s{number}")
    return names
