"""The error for a name that a namespace does not have, which PyTorch may have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

# Among more names than this Python does not look for one that is near.
_FEW = 750


def absent(module: str, name: str) -> AttributeError:
    """The error for `module.name`; Python adds a suggestion where there are few names to choose from."""
    hint = (
        "" if name.startswith("_") else "; if PyTorch has it, it is not here yet (docs/absent.md lists what is absent)"
    )
    names = dir(sys.modules.get(module))
    if len(names) >= _FEW:
        import difflib  # imported where it is used, since it takes long

        near = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
        hint += "".join(f". Did you mean: '{other}'?" for other in near)
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}", name=name, obj=sys.modules.get(module))


def getattr_of(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a namespace that has nothing dynamic but PyTorch's names for what other modules define."""

    def __getattr__(name: str) -> Any:
        if name[:2] == "__":
            # Without a hint: an import inside a function asks for `__path__` each time.
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        from ._name_table import MISSING, find

        if (found := find(module, name)) is not MISSING:
            vars(sys.modules[module])[name] = found
            return found
        raise absent(module, name)

    return __getattr__
