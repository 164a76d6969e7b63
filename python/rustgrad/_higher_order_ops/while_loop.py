"""`while_loop` under the private name of its module, by which libraries import it."""

from __future__ import annotations

from .control_flow import while_loop

__all__ = ["while_loop"]
