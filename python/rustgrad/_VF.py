"""The functions of PyTorch's extension module under the name by which its layers call them: `_VF.lstm`, `_VF.norm`."""

from __future__ import annotations

from typing import Any

from . import _C
from ._absent import absent

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name[:2] != "__":
        import rustgrad

        found = _C.ops.get(name) or vars(_C).get(name) or getattr(rustgrad, name, None)
        if callable(found):
            return found
    raise absent(__name__, name)
