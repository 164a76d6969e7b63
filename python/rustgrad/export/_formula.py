"""Finds how a size depends on symbols, from what it was in several runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction

from ._expr import Expr, symbol

__all__ = ["formula"]


def formula(found: list[int], symbols: Mapping[str, list[int]]) -> Expr | None:
    """An expression that gives these sizes where the symbols have those; None if none of the forms that are tried does."""
    if len(set(found)) == 1:
        return Expr({(): found[0]})
    values = {name: dict(zip(symbols, run)) for name, run in enumerate(zip(*symbols.values()))}
    for made in _candidates(found, symbols):
        if all(made.value(values[i]) == n for i, n in enumerate(found)):
            return made
    return None


def _candidates(found: list[int], symbols: Mapping[str, list[int]]) -> Iterator[Expr]:
    for name, sizes in symbols.items():
        yield from _linear(found, symbol(name), sizes)
    for one, two in itertools.combinations_with_replacement(symbols, 2):
        product = [a * b for a, b in zip(symbols[one], symbols[two])]
        yield from _linear(found, symbol(one) * symbol(two), product)
    for one, two in itertools.combinations(symbols, 2):
        for a, b in itertools.product(range(1, 5), repeat=2):
            total = symbol(one) * a + symbol(two) * b
            yield total + (found[0] - a * symbols[one][0] - b * symbols[two][0])
        for i, j in itertools.product(range(-3, 4), repeat=2):
            base = (symbols[one][0] + i) * (symbols[two][0] + j)
            if base and found[0] % base == 0:
                yield (symbol(one) + i) * (symbol(two) + j) * (found[0] // base)
    for three in itertools.combinations(symbols, 3):
        product = [symbols[three[0]][i] * symbols[three[1]][i] * symbols[three[2]][i] for i in range(len(found))]
        yield from _linear(found, symbol(three[0]) * symbol(three[1]) * symbol(three[2]), product)
        yield symbol(three[0]) + symbol(three[1]) + symbol(three[2]) + (found[0] - sum(symbols[n][0] for n in three))


def _linear(found: list[int], base: Expr, sizes: list[int]) -> Iterator[Expr]:
    """`(p * base + offset) // q + c`."""
    pairs = [(i, j) for i in range(len(sizes)) for j in range(i) if sizes[i] != sizes[j]]
    slopes = {Fraction(found[i] - found[j], sizes[i] - sizes[j]).limit_denominator(64) for i, j in pairs}
    for slope in sorted(slopes | {Fraction(1, d) for d in (2, 4, 8, 16, 32)}, key=lambda s: (s.denominator, s)):
        p, q = slope.numerator, slope.denominator
        for offset in range(q):
            c = found[0] - (sizes[0] * p + offset) // q
            if all((n * p + offset) // q + c == want for n, want in zip(sizes, found)):
                yield (base * p + offset).apply("FloorDiv", q) + c if q > 1 else base * p + c
