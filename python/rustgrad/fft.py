"""`rustgrad.fft`: discrete Fourier transforms, the ops of the table whose names start with `fft.`."""

from ._base import ops

_PREFIX = "fft."
__all__ = sorted(name.removeprefix(_PREFIX) for name in ops if name.startswith(_PREFIX))
globals().update({name: ops[_PREFIX + name] for name in __all__})


def __dir__() -> list[str]:
    return __all__
