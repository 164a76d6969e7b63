"""The answer of `compiler.explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["Explanation"]


class Explanation:
    """What a compiled function did in one call, and what it knows.

    Attributes:
        result: what the call returned.
        road (str): "replay" (a plan ran), "watched" (the function ran and was recorded) or "eager".
        plans (list of str): the steps of each plan.
        guards (list of list of str): the guards of each plan.
        hits (list of int): how often each plan has run.
        reasons (list of str): why calls run as they are.
        missed (list of str): guards that missed before a plan was made again.
    """

    def __init__(self, f: Callable[..., Any], args: tuple, kwargs: dict) -> None:
        state = getattr(f, "_compiled_state", None)
        if state is None:
            raise TypeError("explain: expected a compiled function or module. Compile it first.")
        self.name = getattr(state.function, "__qualname__", type(state.function).__name__)
        self.result = f(*args, **kwargs)
        self.road: str = state.road
        self.plans: list[str] = [p.listing() for p in state.plans]
        self.steps: list[list[str]] = [p.steps() for p in state.plans]
        self.guards: list[list[str]] = [p.guards() for p in state.plans]
        self.hits: list[int] = [p.hits for p in state.plans]
        self.reasons: list[str] = list(state.reasons)
        self.missed: list[str] = list(state.missed)

    def __repr__(self) -> str:
        lines = [f"{self.name}: {self.road}"]
        for i, (plan, steps, guards, hits) in enumerate(
            zip(self.plans, self.steps, self.guards, self.hits, strict=True)
        ):
            common = ", ".join(f"{n} {name}" for name, n in Counter(steps).most_common(5))
            lines.append(f"plan {i}: {len(steps)} step{'s' * (len(steps) != 1)} ({common}), ran {hits} times")
            lines += [f"    {line}" for line in plan.splitlines()]
            lines.append(f"  {len(guards)} guards")
            lines += [f"    {line}" for line in guards]
        lines += [f"runs eagerly: {reason}" for reason in self.reasons]
        lines += [f"missed: {text}" for text in self.missed]
        return "\n".join(lines)
