"""`rustgrad.masked`: the ops of the table whose names start with `masked.`; tensors that carry a mask do not exist."""

from ._base import ops

_PREFIX = "masked."
__all__ = sorted(name.removeprefix(_PREFIX) for name in ops if name.startswith(_PREFIX))
globals().update({name: ops[_PREFIX + name] for name in __all__})
