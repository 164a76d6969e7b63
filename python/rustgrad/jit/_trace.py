"""Where PyTorch keeps the classes of traced modules."""

from __future__ import annotations

from . import ScriptModule, TracerWarning, _script_if_tracing, is_tracing, trace, trace_module  # noqa: F401

__all__ = ["TopLevelTracedModule", "TracedModule", "TracerWarning", "is_tracing", "trace", "trace_module"]


class TracedModule(ScriptModule):
    """The class of parts of a traced module, of which there are no objects: `trace` returns the module itself."""


class TopLevelTracedModule(TracedModule):
    """The class of what `trace` makes of a module, of which there are no objects."""
