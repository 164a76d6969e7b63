"""`einsum` as permutations, sums and products of batches of matrices."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from .._ops import ops
from ._composites import part_of, reshaped, run

__all__: list[str] = []

aten = ops.aten


@part_of(aten.einsum.default)
def _einsum(equation: str, tensors: Any, *, path: Any = None) -> Any:
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    labels = given.split(",")
    plain = all(len(set(part)) == len(part) == t.dim() for part, t in zip(labels, tensors)) and "." not in equation
    if not plain or len(labels) != len(tensors):
        return NotImplemented
    if not arrow:
        every = given.replace(",", "")
        wanted = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    have, value = labels[0], tensors[0]
    for i in range(1, len(tensors)):
        later = wanted + "".join(labels[i + 1 :])
        have, value = _contracted(have, value, labels[i], tensors[i], later)
    have, value = _without(have, value, wanted)
    order = [have.index(c) for c in wanted]
    return value if order == list(range(len(order))) else run(aten.permute.default, value, order)


def _without(labels: str, value: Tensor, needed: str) -> tuple[str, Tensor]:
    """An operand summed over the dimensions that nothing needs."""
    dims = [i for i, c in enumerate(labels) if c not in needed]
    if not dims:
        return labels, value
    return "".join(c for c in labels if c in needed), run(aten.sum.dim_IntList, value, dims)


def _contracted(one: str, left: Tensor, two: str, right: Tensor, later: str) -> tuple[str, Tensor]:
    """The product of two operands, summed over the labels that no later one has."""
    one, left = _without(one, left, two + later)
    two, right = _without(two, right, one + later)
    batch = [c for c in one if c in two and c in later]
    inner = [c for c in one if c in two and c not in later]
    rows, columns = [c for c in one if c not in two], [c for c in two if c not in one]
    sizes = {**dict(zip(two, right.shape)), **dict(zip(one, left.shape))}

    def matrices(t: Tensor, have: str, *groups: list[str]) -> Tensor:
        order = [have.index(c) for group in groups for c in group]
        shape = [_product(sizes[c] for c in group) for group in groups]
        return reshaped(t if order == sorted(order) else run(aten.permute.default, t, order), shape)

    product = run(
        aten.bmm.default, matrices(left, one, batch, rows, inner), matrices(right, two, batch, inner, columns)
    )
    made = [*batch, *rows, *columns]
    return "".join(made), run(aten.view.default, product, [sizes[c] for c in made])


def _product(numbers: Any) -> int:
    count = 1
    for n in numbers:
        count *= n
    return count
