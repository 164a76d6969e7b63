"""The error for a name that a namespace does not have, which PyTorch may have."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def absent(module: str, name: str) -> AttributeError:
    """The error for `module.name`; Python adds a suggestion."""
    hint = (
        "" if name.startswith("_") else "; if PyTorch has it, it is not here yet (docs/absent.md lists what is absent)"
    )
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}", name=name, obj=sys.modules.get(module))


def getattr_of(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a namespace without dynamic attributes."""

    def __getattr__(name: str) -> object:
        raise absent(module, name)

    return __getattr__
