"""What an exported program takes for granted of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._base import Tensor
from .._recording._merge import Merged
from .._recording._sizes import SymInt, rebuilt
from ._expr import Expr
from ._shapes import Leaf, Shapes, user_error

__all__ = ["Guard", "Guards", "input_guards"]

_SIGNS = {"__eq__": "==", "__ne__": "!=", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Guard(NamedTuple):
    """A condition on sizes."""

    left: Expr
    sign: str
    right: Expr | int

    def holds(self, of: Mapping[str, int]) -> bool:
        """Whether it holds for these sizes."""
        left, right = self.left.value(of), self.right.value(of) if isinstance(self.right, Expr) else self.right
        return {
            "==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
        }[self.sign]  # fmt: skip

    def shown(self, names: Mapping[str, str]) -> str:
        """It as Python, with expressions for the symbols."""
        left, right = (_substituted(e, names) for e in (self.left, self.right))
        return f"{left} {self.sign} {right}"


def _substituted(expr: Expr | int, names: Mapping[str, str]) -> str:
    text = repr(expr)
    for name, source in sorted(names.items(), key=lambda p: -len(p[0])):
        text = text.replace(name, source)
    return text.replace("//", " // ").replace("%", " % ")


class Guards:
    """The comparisons of sizes that the program has made, as conditions, and the bounds that follow."""

    def __init__(self, merged: Merged, builder: Any, shapes: Shapes, groups: dict[str, str]) -> None:
        self.shapes, self.builder = shapes, builder
        self.ranges: dict[str, tuple[int, int | None]] = dict(builder.ranges)
        self.found: list[tuple[Guard, bool]] = []
        for asked in merged.trace.questions.values():
            for size, other, sign, own in asked:
                guard = self._guard(merged, size, other, sign)
                if guard is not None and all(guard != g for g, _ in self.found):
                    self.found.append((guard, own))
        self.guards: list[Guard] = []

    def _guard(self, merged: Merged, size: Any, other: Any, sign: str) -> Guard | None:
        if sign not in _SIGNS or not isinstance(other, int) or isinstance(other, bool):
            return None
        left, right = (
            self.builder.expression(rebuilt(n, lambda v, axis: merged.shapes[v][axis]) if isinstance(n, SymInt) else n)
            for n in (size, other)
        )
        if not isinstance(left, Expr):
            return None
        if left == right or any(s.startswith("u") for e in (left, right) if isinstance(e, Expr) for s in e.symbols()):
            return None
        name = _SIGNS[sign]
        guard = Guard(left, name, right)
        return guard if guard.holds(self.builder.hints) else Guard(left, _OPPOSITE[name], right)

    def check(self) -> None:
        """Narrows bounds of sizes without a name. UserError where a condition leaves out sizes that the caller has named."""
        from ._exporter import violation

        lines, fixes, names = [], [], []
        for guard, own in self.found:
            bound = self._bound(guard)
            if bound is None:
                symbols = guard.left.symbols() + (guard.right.symbols() if isinstance(guard.right, Expr) else [])
                named = [s for s in symbols if self.builder.dims.get(s)]
                trivial = guard.sign == "!=" and guard.right in (0, 1)
                if trivial or (guard.sign == "!=" and isinstance(guard.right, Expr)):
                    continue
                if own and named and not self._always(guard):
                    name = self.builder.dims[named[0]]
                    names.append(name)
                    lines.append(self._line(named[0], name, guard.shown(self.builder.sources)))
                else:
                    self.guards.append(guard)
                continue
            symbol, low, high = bound
            old = self.ranges[symbol]
            new = max(old[0], low), high if old[1] is None else old[1] if high is None else min(high, old[1])
            if new == old:
                continue
            name = self.builder.dims.get(symbol)
            if name and own:
                names.append(name)
                source = self.builder.sources[symbol]
                top = "IntInfinity()" if new[1] is None else str(new[1])
                lines.append(self._line(symbol, name, f"{new[0]} <= {source} and {source} <= {top}").removesuffix("."))
                parts = [f"min={new[0]}"] if new[0] > 0 else []
                fixes.append(f"  {name} = Dim('{name}', {', '.join(parts + ([f'max={new[1]}'] if new[1] else []))})")
            elif name:
                self.guards.append(guard)
            else:
                self.ranges[symbol] = new
        if lines:
            raise user_error(violation(list(dict.fromkeys(names)), lines, list(dict.fromkeys(fixes))))

    def _line(self, symbol: str, name: str, condition: str) -> str:
        return (
            f"  - Not all values of {name} = {self.builder.sources[symbol]} in the specified range satisfy the generated guard "
            f"{condition}."
        )

    def _always(self, guard: Guard) -> bool:
        """Whether a condition on one symbol with bounds holds for all of its values, as far as is looked."""
        symbols = guard.left.symbols() + (guard.right.symbols() if isinstance(guard.right, Expr) else [])
        if len(set(symbols)) != 1:
            return False
        low, high = self.ranges[symbols[0]]
        return high is not None and high - low <= 4096 and all(
            guard.holds({symbols[0]: n}) for n in range(max(low, 2), high + 1)
        )  # fmt: skip

    def _bound(self, guard: Guard) -> tuple[str, int, int | None] | None:
        """(symbol, least, largest) where a condition is a bound of a symbol."""
        symbol = guard.left.symbol
        if symbol is None or isinstance(guard.right, Expr) or guard.sign in ("==", "!="):
            return None
        n = guard.right
        return {
            "<": (symbol, 0, n - 1), "<=": (symbol, 0, n), ">": (symbol, n + 1, None), ">=": (symbol, n, None),
        }[guard.sign]  # fmt: skip


def input_guards(
    leaves: list[Leaf],
    sizes: list[list[Expr | int]],
    ranges: Mapping[str, tuple[int, int | None]],
    more: list[Guard],
    checked: list[Any],
) -> list[tuple[str, Any]]:
    """The conditions on arguments in the order in which they are checked: (text, function of the arguments).

    `sizes` are the sizes of each argument that is a tensor, `checked` says which arguments have to be what they were.
    """
    found: list[tuple[str, Any]] = []
    sources: dict[str, tuple[int, int]] = {}
    names: dict[str, str] = {}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf.value, Tensor):
            if checked[i]:
                found.append((f"{leaf.shown} == {leaf.value!r}", lambda a, i=i, v=leaf.value: a[i] == v))
            continue
        for axis, size in enumerate(sizes[i]):
            here = f"{leaf.shown}.size()[{axis}]"
            if not isinstance(size, Expr):
                found.append((f"{here} == {size}", lambda a, i=i, d=axis, n=size: a[i].size()[d] == n))
            elif size.symbol is None:
                continue
            elif size.symbol in sources:
                j, other = sources[size.symbol]
                text = f"{here} == {names[size.symbol]}"
                found.append((text, lambda a, i=i, d=axis, j=j, e=other: a[i].size()[d] == a[j].size()[e]))
            else:
                sources[size.symbol], names[size.symbol] = (i, axis), here
                low, high = ranges.get(size.symbol, (0, None))
                if low > 2:
                    found.append((f"{here} >= {low}", lambda a, i=i, d=axis, n=low: a[i].size()[d] >= n))
                if high is not None:
                    found.append((f"{here} <= {high}", lambda a, i=i, d=axis, n=high: a[i].size()[d] <= n))

    def values(a: list[Any]) -> dict[str, int]:
        return {s: a[i].size()[d] for s, (i, d) in sources.items()}

    for i, leaf in enumerate(leaves):
        for axis, size in enumerate(sizes[i] if isinstance(leaf.value, Tensor) else []):
            if isinstance(size, Expr) and size.symbol is None and all(s in sources for s in size.symbols()):
                text = f"{leaf.shown}.size()[{axis}] == {_substituted(size, names)}"
                found.append((text, lambda a, i=i, d=axis, e=size: a[i].size()[d] == e.value(values(a))))
    for guard in more:
        symbols = guard.left.symbols() + (guard.right.symbols() if isinstance(guard.right, Expr) else [])
        if all(s in sources for s in symbols):
            found.append((guard.shown(names), lambda a, g=guard: g.holds(values(a))))
    return found
