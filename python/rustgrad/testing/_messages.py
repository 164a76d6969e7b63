"""Messages about differences: the number of elements, and the positions of the largest differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _base
from .._base import unravel_index
from .._C import Tensor


def scalar_mismatch(
    actual: Any, expected: Any, *, rtol: float, atol: float, identifier: str | Callable[[str], str] | None = None
) -> str:
    """The message for two numbers."""
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return _message(
        _title("Scalars", identifier),
        f"Expected {expected} but got {actual}.",
        ("absolute", difference, None, atol),
        ("relative", relative, None, rtol),
    )


def tensor_mismatch(
    actual: Any,
    expected: Any,
    matches: Tensor,
    *,
    rtol: float,
    atol: float,
    identifier: str | Callable[[str], str] | None = None,
) -> str:
    """The message for two tensors of one shape; `matches` says which elements are close."""
    total = matches.numel()
    wrong = total - int(matches.sum())
    actual, expected, same = actual.flatten(), expected.flatten(), matches.flatten()
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        # Small integers would wrap around.
        actual, expected = actual.to(_base.int64), expected.to(_base.int64)
    # Matching elements are excluded from the largest differences, in particular equal infinities.
    absolute = (actual - expected).abs().masked_fill(same, 0)
    relative = (absolute / expected.abs()).masked_fill(same, 0)

    def greatest(differences):
        value, place = differences.max(0)
        return value.item(), tuple(int(i) for i in unravel_index(place, matches.shape))

    return _message(
        _title("Tensor-likes", identifier),
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
        ("absolute", *greatest(absolute), atol),
        ("relative", *greatest(relative), rtol),
    )


def _title(kind, identifier):
    if callable(identifier):
        return identifier(kind)
    return kind if identifier is None else identifier


def _message(title, extra, *differences):
    exact = all(tolerance == 0 for *_, tolerance in differences)
    lines = [f"{title} are not {'equal' if exact else 'close'}!", "", extra]
    for kind, value, place, tolerance in differences:
        line = (
            f"{kind.title()} difference: {value}"
            if place is None
            else f"Greatest {kind} difference: {value} at index {place}"
        )
        lines.append(line if exact else f"{line} (up to {tolerance} allowed)")
    return "\n".join(lines)
