"""Names that libraries import or ask about, for what is not here: they refuse when they are called."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["refusing_class", "refusing_function"]


def refusing_class(module: str, name: str, hint: str) -> type:
    """A class of which there are no objects."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not supported. Hint: {hint}")

    members = {"__new__": __new__, "__module__": module, "__doc__": f"NotImplementedError. Hint: {hint}"}
    return type(name, (), members)


def refusing_function(module: str, name: str, hint: str) -> Any:
    """A function that cannot be called."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name} is not supported. Hint: {hint}")

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, f"NotImplementedError. Hint: {hint}"
    return function
