"""The errors of exporting."""

from __future__ import annotations

from .._recording._errors import RecordingError

__all__ = ["DataDependent"]


class DataDependent(RecordingError):
    """The program reads elements that depend on its inputs."""

    def __init__(self, key: str, where: str) -> None:
        super().__init__(f"'{key}' at {where} reads elements")
        self.key, self.where = key, where
