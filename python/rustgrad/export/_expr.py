"""Sizes as expressions of symbols: sums of products, as PyTorch prints them and writes them to files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from .._recording._sizes import SymInt

__all__ = ["Expr", "Size", "of_size", "parse", "symbol"]

# A product of atoms, each a symbol's name or a function of expressions.
Atom = Any
Monomial = tuple[Atom, ...]


class Expr:
    """A sum of products of symbols and of functions ("FloorDiv", "Mod", "Max" ...), with integer factors."""

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {k: v for k, v in terms.items() if v}
        self._key = tuple(sorted(((repr(k), v) for k, v in self.terms.items())))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self._key == other._key

    def __repr__(self) -> str:
        return _pretty(self)

    @property
    def constant(self) -> int | None:
        """The number that it is; None where it has symbols."""
        if any(k for k in self.terms):
            return None
        return self.terms.get((), 0)

    @property
    def symbol(self) -> str | None:
        """The name of the symbol that it is; None for anything else."""
        if len(self.terms) != 1:
            return None
        (key, factor), *_ = self.terms.items()
        return key[0] if factor == 1 and len(key) == 1 and isinstance(key[0], str) else None

    def __add__(self, other: Any) -> Expr:
        terms = dict(self.terms)
        for k, v in _of(other).terms.items():
            terms[k] = terms.get(k, 0) + v
        return Expr(terms)

    def __mul__(self, other: Any) -> Expr:
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in _of(other).terms.items():
                key = tuple(sorted((*a, *b), key=repr))
                terms[key] = terms.get(key, 0) + x * y
        return Expr(terms)

    def __sub__(self, other: Any) -> Expr:
        return self + _of(other) * -1

    def apply(self, name: str, *others: Any) -> Expr:
        """A function of this and other expressions."""
        args = (self, *map(_of, others))
        if name == "FloorDiv" and args[1].constant == 1:
            return self
        if (
            name == "FloorDiv"
            and args[1].constant
            and all(v % (args[1].constant or 1) == 0 for v in self.terms.values())
        ):
            return Expr({k: v // (args[1].constant or 1) for k, v in self.terms.items()})
        numbers = [a.constant for a in args]
        if all(n is not None for n in numbers):
            return _of(_FUNCTIONS[name](*numbers))
        return Expr({((name, *args),): 1})

    def symbols(self) -> list[str]:
        """The names of its symbols, each once."""
        found: dict[str, None] = {}
        for key in self.terms:
            for atom in key:
                inner = [atom] if isinstance(atom, str) else [s for a in atom[1:] for s in a.symbols()]
                found.update(dict.fromkeys(inner))
        return list(found)

    def value(self, of: Mapping[str, int]) -> int:
        """Its value where symbols have these."""
        total = 0
        for key, factor in self.terms.items():
            for atom in key:
                factor *= of[atom] if isinstance(atom, str) else _FUNCTIONS[atom[0]](*(a.value(of) for a in atom[1:]))
            total += factor
        return total

    def written(self, positive: Callable[[str], bool] = lambda name: True) -> str:
        """The form in files, which names each function."""
        terms = sorted(self.terms.items(), key=_order)
        parts = []
        for key, factor in terms:
            atoms = [_written_atom(a, positive) for a in key]
            atoms = [f"Integer({factor})", *atoms] if factor != 1 or not atoms else atoms
            parts.append(atoms[0] if len(atoms) == 1 else f"Mul({', '.join(atoms)})")
        return parts[0] if len(parts) == 1 else f"Add({', '.join(parts)})" if parts else "Integer(0)"


Size = Expr | int
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
    "Pow": lambda a, b: a**b,
}
_SIGNS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def _of(value: Any) -> Expr:
    return value if isinstance(value, Expr) else Expr({(): int(value)})


def symbol(name: str) -> Expr:
    """A symbol."""
    return Expr({(name,): 1})


def of_size(number: Any, leaf: Callable[[int, int], Expr | int]) -> Expr | int:
    """The expression of a recorded size, where `leaf(value, axis)` gives that of a size of a tensor."""
    if not isinstance(number, SymInt):
        return int(number)
    sign, left, right = number.expr
    if sign == "dim":
        return leaf(left, right)
    a, b = _of(of_size(left, leaf)), _of(of_size(right, leaf))
    made = _SIGNS[sign](a, b) if sign in _SIGNS else a.apply({"//": "FloorDiv", "%": "Mod"}[sign], b)
    return made if made.constant is None else made.constant


def _order(term: tuple[Monomial, int]) -> Any:
    return (not term[0], -len(term[0]), repr(term[0]))


def _pretty(expr: Expr) -> str:
    text = ""
    for key, factor in sorted(expr.terms.items(), key=_order):
        sign, size = ("-" if factor < 0 else "+"), abs(factor)
        atoms = [_atom(a) for a in key]
        if len(expr.terms) > 1 or len(atoms) > 1 or size != 1:
            atoms = [f"({a})" if a.startswith("(") else a for a in atoms]
        part = "*".join([str(size), *atoms] if size != 1 or not atoms else atoms)
        text += f" {sign} {part}" if text else ("-" if sign == "-" else "") + part
    return text or "0"


def _atom(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    name, *args = atom
    if name in ("FloorDiv", "CleanDiv"):
        return f"({_inner(args[0])}//{_inner(args[1])})"
    if name in ("Mod", "PythonMod"):
        return f"({_inner(args[0])}%{_inner(args[1])})"
    return f"{name}({', '.join(map(repr, args))})"


def _inner(expr: Expr) -> str:
    text = repr(expr)
    return text if expr.constant is not None or expr.symbol else f"({text})"


def _written_atom(atom: Atom, positive: Callable[[str], bool]) -> str:
    if isinstance(atom, str):
        return f"Symbol('{atom}', {'positive=True, ' if positive(atom) else ''}integer=True)"
    name, *args = atom
    return f"{name}({', '.join(a.written(positive) for a in args)})"


def parse(text: str) -> Expr:
    """The expression that a file names.

    Raises:
        ValueError: it has something that is no expression of sizes.
    """
    return _parsed(ast.parse(text.strip(), mode="eval").body, text)


def _parsed(node: ast.AST, text: str) -> Expr:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _of(node.value)
    if isinstance(node, ast.Name):
        return symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _parsed(node.operand, text) * -1
    if isinstance(node, ast.BinOp):
        a, b = _parsed(node.left, text), _parsed(node.right, text)
        if isinstance(node.op, ast.Add):
            return a + b
        if isinstance(node.op, ast.Sub):
            return a - b
        if isinstance(node.op, ast.Mult):
            return a * b
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            return a.apply("FloorDiv" if isinstance(node.op, ast.FloorDiv) else "Mod", b)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name == "Symbol" and node.args and isinstance(node.args[0], ast.Constant):
            return symbol(str(node.args[0].value))
        args = [_parsed(a, text) for a in node.args]
        if name == "Integer":
            return args[0]
        if name in ("Add", "Mul") and args:
            total = args[0]
            for a in args[1:]:
                total = total + a if name == "Add" else total * a
            return total
        if name in _FUNCTIONS:
            return args[0].apply(name, *args[1:])
    raise ValueError(f"export.load: {text!r} is not an expression of sizes")
