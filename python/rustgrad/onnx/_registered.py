"""Translations that programs register for ops by name."""

from __future__ import annotations

from typing import Any

from .errors import OnnxExporterError

__all__ = ["register", "registered", "unregister"]

_found: dict[str, dict[int, Any]] = {}


def _key(name: str) -> str:
    namespace, separator, leaf = name.partition("::")
    if not separator or not namespace or not leaf:
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name."
        )
    return leaf.split(".")[0]


def register(name: str, function: Any, opset: int) -> None:
    """The translation of an op from an opset on."""
    _found.setdefault(_key(name), {})[int(opset)] = function


def unregister(name: str, opset: int) -> None:
    """Forgets a translation."""
    _found.get(_key(name), {}).pop(int(opset), None)


def registered(opset: int) -> dict[str, Any]:
    """The translations for an opset, by op: the newest that is not newer."""
    found = {}
    for key, versions in _found.items():
        fitting = [v for v in versions if v <= opset]
        if fitting:
            found[key] = versions[max(fitting)]
    return found
