"""Names of PyTorch's functional tensors, for the tests of libraries whether something is one: nothing is."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["FunctionalTensor", "FunctionalTensorMode", "mb_unwrap_functional_tensor"]


def _refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"{cls.__name__}: there are no functional tensors; writes in place are ordinary calls")


class FunctionalTensor:
    """No tensor is one."""

    __new__ = _refuse


class FunctionalTensorMode:
    """A mode that is not here."""

    __new__ = _refuse


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor itself."""
    return tensor


__getattr__ = getattr_of(__name__)
