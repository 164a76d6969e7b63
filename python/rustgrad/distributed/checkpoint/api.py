"""The exception that every rank raises where one of them has failed."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]

# An exception of a rank and where it was raised, as it crosses to the others.
WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


def _wrap_exception(exc: BaseException) -> WRAPPED_EXCEPTION:
    """An exception and where it was raised."""
    return exc, traceback.extract_tb(exc.__traceback__)


def _is_wrapped_exception(obj: Any) -> bool:
    """Whether an object is what `_wrap_exception` returns."""
    return (
        isinstance(obj, tuple)
        and len(obj) == 2
        and isinstance(obj[0], BaseException)
        and isinstance(obj[1], traceback.StackSummary)
    )


class CheckpointException(BaseException):
    """Saving or loading has failed on some ranks. It is no `Exception`, as in PyTorch.

    Args:
        msg (str): what failed.
        failures (dict): rank -> (its exception, where it was raised).
    """

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """Rank -> (its exception, where it was raised)."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (exc, where) in self._failures.items():
            lines = traceback.format_list(where) + traceback.format_exception_only(type(exc), value=exc)
            text += f"Traceback (most recent call last): (RANK {rank})\n" + "".join(lines)
        return text
