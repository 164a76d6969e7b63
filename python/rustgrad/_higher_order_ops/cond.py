"""`cond` under the private name of its module, by which libraries import it."""

from __future__ import annotations

from .control_flow import cond

__all__ = ["cond", "cond_op"]

cond_op = cond
