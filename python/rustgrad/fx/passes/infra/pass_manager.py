"""`PassManager`: runs passes over a graph, in an order that satisfies constraints."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from ....nn.modules.module import Module
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

logger = logging.getLogger(__name__)


def pass_result_wrapper(fn: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A pass that returns nothing, or a module, as one that returns a `PassResult`."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return result if isinstance(result, PassResult) else PassResult(result, True)

    if not inspect.isfunction(fn):
        wrapped_fn.__name__ = type(fn).__name__
    return wrapped_fn


def _validate_pass_schedule_constraint(constraint: Callable[..., bool], passes: list[Callable[..., Any]]) -> None:
    for place, first in enumerate(passes):
        for later in passes[place + 1 :]:
            if not constraint(first, later):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {later} before {first} but found {later} at index"
                    f" {passes.index(later)} and {first} at index {place} in pass list."
                )


def _topological_sort_passes(
    passes: list[Callable[..., Any]], constraints: list[Callable[..., bool]]
) -> list[Callable[..., Any]]:
    """The passes in an order that the constraints allow.

    Raises:
        RuntimeError: there is none.
    """
    if not constraints:
        return passes
    # A constraint that refuses (a, b) asks for b before a.
    before = {p: [q for q in passes if q is not p and not all(c(p, q) for c in constraints)] for p in passes}
    order: list[Callable[..., Any]] = []
    left = list(passes)
    while left:
        ready = next((p for p in left if all(q in order for q in before[p])), None)
        if ready is None:
            raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
        left.remove(ready)
        order.append(ready)
    return order


def this_before_that_pass_constraint(this: Callable[..., Any], that: Callable[..., Any]) -> Callable[..., bool]:
    """A constraint: `this` runs before `that`."""

    def depends_on(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
        return a != that or b != this

    return depends_on


class Schedule:
    """Passes, and constraints on their order.

    Args:
        passes (list): the passes.
        constraints (list): functions of two passes that say whether the first may run before the second.
    """

    passes: list[Callable[..., Any]]
    constraints: list[Callable[..., bool]]

    def __init__(
        self, passes: list[Callable[..., Any]] | None = None, constraints: list[Callable[..., bool]] | None = None
    ) -> None:
        self.passes, self.constraints = passes or [], constraints or []
        self._validated = False

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Adds a pass after the others."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError: the order of the passes does not satisfy the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True


class PassManager(Schedule):
    """Runs passes over a graph.

    Args:
        passes (list): functions of a module, which return None, a module or a `PassResult`.
        constraints (list): functions of two passes that say whether the first may run before the second.
        steps (int): how often all are run at most; less often where none changes anything. Default: 1.
        run_checks_after_each_pass (bool): whether the checks run after each pass.
        suppress_check_failures (bool): not used.
    """

    def __init__(
        self,
        passes: list[Callable[..., Any]] | None = None,
        constraints: list[Callable[..., bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        super().__init__(passes, constraints)
        self.steps = steps or 1
        self.run_checks_after_each_pass, self.suppress_check_failures = (
            run_checks_after_each_pass,
            suppress_check_failures,
        )

    def solve_constraints(self) -> None:
        """Orders the passes so that they satisfy the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[..., Any]) -> None:
        """Replaces `check`, which runs on the module before and after the passes; it takes one argument and returns nothing.

        Raises:
            TypeError: it takes other arguments.
            ValueError: it does not return None.
        """
        parameters = list(inspect.signature(check).parameters.values())
        if len(parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        setattr(self, "check", check)  # noqa: B010

    def check(self, module: Module) -> None:
        """Called before and after the passes."""

    def __call__(self, module: Module) -> PassResult:
        """Runs the passes.

        Raises:
            Exception: the class of a pass's error, with the names of the passes before it.
            TypeError: a pass returns something else.
        """
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for number, fn in enumerate(self.passes):
                name = fn.__name__ if inspect.isfunction(fn) else type(fn).__name__
                logger.debug("Running pass '%s'", name)
                try:
                    result = fn(module)
                    if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {name} should be type PassResult. Please wrap it with pass_result_wrapper()"
                        )
                    module, modified = result.graph_module, modified or result.modified
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as error:
                    names = [p.__name__ if inspect.isfunction(p) else type(p).__name__ for p in self.passes[:number]]
                    raise Exception(
                        f"An error occurred when running the '{name}' pass after the following passes: {names}"
                    ) from error  # noqa: TRY002
            changed = changed or modified
            if not modified:
                break
        self.check(module)
        return PassResult(module, changed)  # type: ignore[arg-type]
