"""Errors of the compiler, which nothing raises."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """The base class."""


class Unsupported(TorchDynamoException):
    """Code that cannot be compiled."""


class UserError(TorchDynamoException):
    """A mistake of the program."""
