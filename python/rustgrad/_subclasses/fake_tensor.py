"""Names of PyTorch's fake tensors, for the tests of libraries whether something is one: nothing is.

What a call gives without computing it is known on the meta device: `with torch.device("meta"):`.
"""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake", "unset_fake_temporarily"]


def _refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"{cls.__name__}: there are no fake tensors; use tensors of the meta device")


class FakeTensor:
    """No tensor is one."""

    __new__ = _refuse


class FakeTensorConverter:
    """Makes fake tensors in PyTorch; not here."""

    __new__ = _refuse


class FakeTensorMode:
    """A mode that is not here."""

    __new__ = _refuse


def is_fake(x: object) -> bool:
    """False: there are no fake tensors; those of the meta device are none in PyTorch either."""
    return False


# `with unset_fake_temporarily() as mode:` a block without effect: the mode is None.
unset_fake_temporarily = contextlib.nullcontext


__getattr__ = getattr_of(__name__)
