"""`ScriptObject`: what PyTorch's pickles call its C++ objects, such as packed weights; the class is in the state, by its name."""

from __future__ import annotations

import copyreg
from typing import Any

__all__ = ["ScriptObject"]

_PREFIX = "__torch__.torch.classes."


class ScriptObject:
    """An object with a state: a tuple of tensors, numbers, text and such objects.

    Raises:
        RuntimeError: a pickle names a class that is not here.
    """

    _qualified = ""

    def _parts(self) -> Any:
        """The state."""
        raise NotImplementedError

    def _take_parts(self, parts: Any) -> None:
        """Takes a state."""
        raise NotImplementedError

    def __getstate__(self) -> Any:
        return self._parts(), _PREFIX + self._qualified

    def __setstate__(self, state: Any) -> None:
        from . import _cells, _ops_embedding, _packed

        parts, name = state
        for module in (_packed, _cells, _ops_embedding):
            for cls in vars(module).values():
                if isinstance(cls, type) and issubclass(cls, ScriptObject) and _PREFIX + cls._qualified == name:
                    self.__class__ = cls._class_of(parts)
                    self._take_parts(parts)
                    return
        raise RuntimeError(f"ScriptObject: there is no class {name} here")

    @classmethod
    def _class_of(cls, parts: Any) -> Any:
        """The class of objects with a state."""
        return cls

    def __reduce_ex__(self, protocol: Any) -> Any:
        return copyreg.__newobj__, (ScriptObject,), self.__getstate__()  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Any:
        import copy

        made = object.__new__(type(self))
        memo[id(self)] = made
        made._take_parts(copy.deepcopy(self._parts(), memo))
        return made

    def __repr__(self) -> str:
        return f"ScriptObject <{_PREFIX + self._qualified}>"
