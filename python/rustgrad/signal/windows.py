"""`rustgrad.signal.windows`: the ops of the table whose names start with `signal.windows.`."""

import sys

from .._base import ops

_PREFIX = "signal.windows."
__all__ = sorted(name.removeprefix(_PREFIX) for name in ops if name.startswith(_PREFIX))
globals().update({name: ops[_PREFIX + name] for name in __all__})

# PyTorch's functions are in a module of that name in the package of that name.
windows = sys.modules[__name__ + ".windows"] = sys.modules[__name__]


def __dir__() -> list[str]:
    return __all__
