"""The exception of the recorder."""

from __future__ import annotations

__all__ = ["RecordingError"]


class RecordingError(RuntimeError):
    """A program cannot be recorded; exporters raise it as their own error, with their name before the text."""
