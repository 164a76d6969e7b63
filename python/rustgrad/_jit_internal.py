"""Private names of TorchScript's decorators that libraries import; each returns what it is given."""

from __future__ import annotations

from typing import Any

from .jit import Final as Final
from .jit import _overload as _overload
from .jit import _overload_method as _overload_method
from .jit import export as export
from .jit import ignore as ignore
from .jit import is_scripting as is_scripting
from .jit import unused as unused

__all__: list[str] = []


def _copy_to_script_wrapper(fn: Any) -> Any:
    """`fn` itself."""
    return fn
