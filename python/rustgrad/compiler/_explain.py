"""The answer of `compiler.explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from . import compile

__all__ = ["Explanation"]

# The first call runs eagerly, two are watched.
_CALLS_TO_A_PLAN = 3


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
        graph_count, graph_break_count, op_count (int): plans, reasons and steps, as `torch._dynamo.explain` counts them.
    """

    def __init__(self, f: Callable[..., Any], args: tuple, kwargs: dict) -> None:
        compiled = hasattr(f, "_compiled_state")
        if not compiled:
            if not callable(f):
                raise TypeError(f"explain: expected a function or module, got {type(f).__name__}")
            f = compile(f)
        state = f._compiled_state
        self.name = getattr(state.function, "__qualname__", type(state.function).__name__)
        for _ in range(1 if compiled else _CALLS_TO_A_PLAN):
            self.result = f(*args, **kwargs)
            if state.plans or state.reasons:
                break
        self.road: str = state.road
        self.plans: list[str] = [p.listing() for p in state.plans]
        self.steps: list[list[str]] = [p.steps() for p in state.plans]
        self.guards: list[list[str]] = [p.guards() for p in state.plans]
        self.hits: list[int] = [p.hits for p in state.plans]
        self.reasons: list[str] = list(state.reasons)
        self.missed: list[str] = list(state.missed)
        self.graph_count, self.graph_break_count = len(self.plans), len(self.reasons)
        self.op_count = sum(len(steps) for steps in self.steps)

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
