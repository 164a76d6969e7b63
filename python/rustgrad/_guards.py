"""What programs ask of the modes of fake tensors, and of traces and compilations that run, of which there are none."""

from __future__ import annotations

import sys
from typing import Any

__all__: list[str] = []


def detect_fake_mode(inputs: Any = None) -> Any:
    """The mode of fake tensors that this thread is in, or that some among the inputs are of; None if there is none."""
    mode = active_fake_mode()
    if mode is not None or inputs is None:
        return mode
    from ._subclasses.fake_tensor import FakeTensor
    from .utils._pytree import tree_leaves

    return next((t.fake_mode for t in tree_leaves(inputs) if isinstance(t, FakeTensor)), None)


def active_fake_mode() -> Any:
    """The mode of fake tensors that this thread is in; None if there is none."""
    loaded = sys.modules.get("rustgrad._subclasses.fake_tensor")
    return None if loaded is None else loaded.active_mode()


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
