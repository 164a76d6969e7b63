"""The former `PassManager`, whose passes take and return a module; that of `infra.pass_manager` says what changed too."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from .infra.pass_manager import Schedule, this_before_that_pass_constraint

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A pass that changes its argument and returns something else, as one that returns the argument."""

    @wraps(fn)
    def wrapped_fn(gm):
        fn(gm)
        return gm

    return wrapped_fn


def log_hook(fn: Callable[..., Any], level: int = logging.INFO) -> Callable[..., Any]:
    """A pass that logs its result."""

    @wraps(fn)
    def wrapped_fn(gm):
        result = fn(gm)
        logger.log(level, "Ran pass %s\nGraph:\n%s", fn, getattr(result, "graph", result))
        return result

    return wrapped_fn


def loop_pass(
    base_pass: Callable[..., Any], n_iter: int | None = None, predicate: Callable[..., bool] | None = None
) -> Callable[..., Any]:
    """A pass that is run `n_iter` times, or while `predicate` holds for the result.

    Raises:
        AssertionError: both or none are given.
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def new_pass(source):
        output = source
        if n_iter is not None:
            for _ in range(n_iter):
                output = base_pass(output)
            return output
        while predicate(output):  # type: ignore[misc]
            output = base_pass(output)
        return output

    return new_pass


def these_before_those_pass_constraint(these: Callable[..., Any], those: Callable[..., Any]) -> Callable[..., bool]:
    """A constraint: passes made of `these` run before those made of `those`, under whatever wrappers."""

    def depends_on(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
        return unwrap(a) != those or unwrap(b) != these

    return depends_on


class PassManager(Schedule):
    """Runs passes, each of which takes a module and returns one.

    Args:
        passes (list): the passes.
        constraints (list): functions of two passes that say whether the first may run before the second.
    """

    @classmethod
    def build_from_passlist(cls, passes: list[Callable[..., Any]]) -> PassManager:
        """A manager of these passes."""
        return cls(passes)

    def remove_pass(self, _passes: list[str]) -> None:
        """Removes passes by the names of their functions."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Callable[..., Any], _replacement: Callable[..., Any]) -> None:
        """Puts a pass in the place of the one with the same name as `_target`."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """RuntimeError: the order of the passes does not satisfy the constraints."""
        self.validate_constraints()

    def __call__(self, source: Any) -> Any:
        """What the last pass returns."""
        self.validate()
        for fn in self.passes:
            source = fn(source)
        return source
