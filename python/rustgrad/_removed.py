"""Functions that PyTorch removed: each raises RuntimeError and names its replacement."""

from __future__ import annotations

from typing import Any, NoReturn

from ._base import Tensor

_INSTEAD = {
    "cholesky": "`torch.linalg.cholesky(A)`; for the upper factor its `.mH`",
    "eig": "`torch.linalg.eig` or `torch.linalg.eigvals`, whose results are complex",
    "lstsq": "`torch.linalg.lstsq`, whose arguments come in the other order",
    "matrix_rank": "`torch.linalg.matrix_rank`, where `symmetric` is called `hermitian`",
    "qr": "`torch.linalg.qr(A, mode='reduced')`; `some=False` is `mode='complete'`",
    "solve": "`torch.linalg.solve`, whose arguments come in the other order",
    "symeig": "`torch.linalg.eigh` or `torch.linalg.eigvalsh`, which read the lower triangle by default",
}

__all__ = sorted(_INSTEAD)


def _removed(name):
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"{name}: This function was deprecated since version 1.9 and is now removed. Use {_INSTEAD[name]}."
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = "rustgrad"
    function.__doc__ = f"Removed from PyTorch; use {_INSTEAD[name]}.\n\nRaises:\n    RuntimeError: always."
    return function


for _name in __all__:
    globals()[_name] = _removed(_name)
    if _name != "matrix_rank":
        setattr(Tensor, _name, globals()[_name])
