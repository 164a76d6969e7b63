"""What programs ask of a tracer of fake tensors that runs: there is none."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def detect_fake_mode(inputs: Any = None) -> None:
    """None: no tensor is fake."""


def active_fake_mode() -> None:
    """None: no mode makes fake tensors."""


class _Context:
    @staticmethod
    def try_get() -> None:
        """None: nothing is traced."""

    @staticmethod
    def get() -> Any:
        """RuntimeError: nothing is traced."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


class TracingContext(_Context):
    """The trace that runs: none."""


class CompileContext(_Context):
    """The compilation that runs: none."""

    @staticmethod
    def current_compile_id() -> None:
        """None: nothing is compiled."""
