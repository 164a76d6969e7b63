"""`rustgrad.utils.flop_counter`: the name that libraries import; operations are not counted here."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """A context that would count floating-point operations: it refuses to be entered.

    Args:
        mods (Module or list, optional), depth (int), display (bool), custom_mapping (dict, optional): accepted.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.depth, self.display = depth, display

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            "FlopCounterMode: operations are not counted here. Hint: profiler.profile records calls, shapes and times."
        )

    def __exit__(self, *exc: object) -> None: ...

    def get_total_flops(self) -> int:
        """0, as before every count."""
        return 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """No module has been entered."""
        return {}


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
