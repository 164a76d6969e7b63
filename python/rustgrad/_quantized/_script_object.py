"""`ScriptObject`: what PyTorch's pickles call its C++ objects, such as packed weights; their class is in the state, by its name."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["ScriptObject"]

_PREFIX = "__torch__.torch.classes."
# Name -> what makes an object from a state.
CLASSES: dict[str, Any] = {}


class ScriptObject:
    """An object of a class that pickles name, with its attributes and methods.

    Args:
        held (object): has `parts()`, a state of tensors, numbers and text, and the name `qualified` of its class.

    Raises:
        RuntimeError: a pickle names a class that is not here.
    """

    __module__ = __name__.partition(".")[0]  # where pickles look for it

    def __init__(self, held: Any) -> None:
        self.__dict__["_held"] = held

    def __getattr__(self, name: str) -> Any:
        if name == "_held" or (name[:2] == "__" and name[-2:] == "__"):
            raise AttributeError(name)
        return getattr(self._held, name)

    def __getstate__(self) -> Any:
        return self._held.parts(), _PREFIX + self._held.qualified

    def __setstate__(self, state: Any) -> None:
        from . import _cells, _ops_embedding, _packed  # noqa: F401

        parts, name = state
        make = CLASSES.get(name.removeprefix(_PREFIX))
        if make is None:
            raise RuntimeError(f"ScriptObject: there is no class {name} here")
        self.__dict__["_held"] = make(parts)

    def __deepcopy__(self, memo: Any) -> Any:
        held = CLASSES[self._held.qualified](copy.deepcopy(self._held.parts(), memo))
        return memo.setdefault(id(self), ScriptObject(held))

    def __repr__(self) -> str:
        return f"ScriptObject <{_PREFIX + self._held.qualified}>"
