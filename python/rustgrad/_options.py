"""Options that programs set for a compiler which is not here: any name can be set and read back."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterable, Iterator
from typing import Any


class Options(types.ModuleType):
    """A module of options without effect; an option that nobody set is None. Some names are groups of options."""

    def __init__(self, name: str, groups: Iterable[str] = ()) -> None:
        super().__init__(name)
        for group in groups:
            setattr(self, group, Options(f"{name}.{group}"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    @contextlib.contextmanager
    def patch(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A block, or a decorator, in which options have other values."""
        changes = dict(args[0]) if args and isinstance(args[0], dict) else dict([args] if args else [], **kwargs)
        before = {name: vars(self).get(name) for name in changes}
        vars(self).update(changes)
        try:
            yield
        finally:
            vars(self).update(before)
