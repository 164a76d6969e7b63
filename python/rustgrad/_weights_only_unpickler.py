"""Pickles that hold only data, and the classes that they may name: PyTorch's private path to what `load` does.

`Unpickler(file).load()` reads a pickle; a subclass, or the object, gives `persistent_load`.
"""

from __future__ import annotations

from pickle import UnpicklingError
from typing import Any, BinaryIO

from ._safe_globals import add_safe_globals as _add_safe_globals
from ._safe_globals import allowed as _get_user_allowed_globals
from ._safe_globals import calls, known_globals, may_be_made
from ._safe_globals import clear_safe_globals as _clear_safe_globals
from ._safe_globals import get_safe_globals as _get_safe_globals
from ._safe_globals import safe_globals as _safe_globals
from ._unpickler import Unpickler as _Machine
from ._unpickler import names_in

__all__ = [
    "Unpickler",
    "UnpicklingError",
    "_add_safe_globals",
    "_clear_safe_globals",
    "_get_safe_globals",
    "_get_user_allowed_globals",
    "_safe_globals",
    "get_globals_in_pkl",
    "load",
]


def _get_allowed_globals() -> dict[str, Any]:
    """What a pickle may name, by "module.name"."""
    return {
        f"{module}.{name}": value for (module, name), value in known_globals().items()
    } | _get_user_allowed_globals()


def get_globals_in_pkl(file: BinaryIO) -> set[str]:
    """The "module.name"s that a pickle names; nothing is built."""
    return {f"{module}.{name}" for module, name in names_in(file)}


class Unpickler:
    """Reads one pickle: values, containers, tensors and what `add_safe_globals` allows.

    Args:
        file: has `read` and `readline`.
        encoding (str): of strings that Python 2 wrote; "bytes" keeps them as bytes.
    """

    def __init__(self, file: BinaryIO, *, encoding: str = "bytes") -> None:
        self.file, self.encoding = file, encoding

    def persistent_load(self, pid: Any) -> Any:
        """The value of a persistent id; UnpicklingError unless a program gives another method."""
        raise UnpicklingError("unsupported persistent id encountered")

    def load(self) -> Any:
        """The value of the pickle.

        Raises:
            UnpicklingError: it names what it may not, or is damaged.
        """
        known = _get_allowed_globals()

        def find(module: str, name: str) -> Any:
            try:
                return known[f"{module}.{name}"]
            except KeyError:
                raise UnpicklingError(
                    f"Unsupported global: GLOBAL {module}.{name} was not an allowed global by default. "
                    f"Please use `torch.serialization.add_safe_globals([{name}])` to allowlist it if you trust it."
                ) from None

        def persistent(pid: Any) -> Any:
            return self.persistent_load(pid)

        return _Machine(self.file, find, calls(), may_be_made, persistent, self.encoding).load()


def load(file: BinaryIO, *, encoding: str = "ASCII") -> Any:
    """The value of a pickle that holds only data."""
    return Unpickler(file, encoding=encoding).load()
