"""`rustgrad.linalg`: the ops of the table whose names start with `linalg.`, and `LinAlgError`."""

from . import _C
from ._base import ops

LinAlgError = _C._LinAlgError
_PREFIX = "linalg."
_NAMES = sorted(name.removeprefix(_PREFIX) for name in ops if name.startswith(_PREFIX))
globals().update({name: ops[_PREFIX + name] for name in _NAMES})
__all__ = ["LinAlgError", *_NAMES]


def __dir__() -> list[str]:
    return __all__
