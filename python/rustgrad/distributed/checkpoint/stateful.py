"""Objects that say themselves what is saved of them."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict()` and `load_state_dict(state_dict)`: modules, optimizers, parts of a program."""

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved: tensors, dicts, and objects that can be pickled."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what was saved."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
