"""`TorchVersion`: the class of `torch.__version__`, text that compares as a version number: "2.15.0" is later than "2.4"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._vendor.packaging.version import InvalidVersion, Version

__all__ = ["TorchVersion"]


def _version(value: Any) -> Version:
    if isinstance(value, Version):
        return value
    if isinstance(value, str):
        return Version(value)
    if isinstance(value, (tuple, list)):
        return Version(".".join(str(item) for item in value))
    raise InvalidVersion(f"can't convert {value} to Version")


class TorchVersion(str):
    """A version as text, compared as a version with text, a `Version` or a tuple of numbers; as text with text that is none."""

    __slots__ = ()


def _compared(name: str) -> Callable[[Any, Any], Any]:
    def compare(self: TorchVersion, other: Any) -> Any:
        try:
            return getattr(_version(str(self)), name)(_version(other))
        except InvalidVersion:
            return getattr(str, name)(self, other)

    compare.__name__ = compare.__qualname__ = name
    return compare


for _name in ("__gt__", "__lt__", "__eq__", "__ge__", "__le__"):
    setattr(TorchVersion, _name, _compared(_name))
TorchVersion.__hash__ = str.__hash__  # type: ignore[method-assign]
TorchVersion.__ne__ = str.__ne__  # type: ignore[method-assign]


def __dir__() -> list[str]:
    return __all__
