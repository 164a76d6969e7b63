"""Errors of the compiler."""

from __future__ import annotations

from .._absent import getattr_of
from ..compiler._backends import BackendCompilerFailed, InvalidBackend
from ..compiler._watch import TorchDynamoException, Unsupported

__all__ = ["BackendCompilerFailed", "InvalidBackend", "TorchDynamoException", "Unsupported", "UserError"]


class UserError(TorchDynamoException):
    """A mistake of the program, which nothing raises."""


__getattr__ = getattr_of(__name__)
