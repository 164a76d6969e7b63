"""What the names in PyTorch's pickles are here."""

from __future__ import annotations

import importlib
from typing import Any

from . import return_types
from ._C import Tensor
from ._own import OWN
from ._unpickler import CheckpointError

__all__ = ["counterpart"]

# Functions that are written in C++ are pickled with the module or class that has them there.
_HOMES = {
    "torch._C._linalg": ("linalg", "linalg_"),
    "torch._C._fft": ("fft", "fft_"),
    "torch._C._special": ("special", "special_"),
}


def counterpart(module: str, name: str) -> Any:
    """The object of this package for a PyTorch name. CheckpointError: there is none."""
    try:
        if module == "torch.return_types":
            return return_types._restored(name)
        if module == "torch._C" and name == "_VariableFunctionsClass":
            return importlib.import_module(OWN)
        if module == "torch._C" and name in ("TensorBase", "_TensorBase"):
            return Tensor
        space, prefix = _HOMES.get(module, (module[len("torch.") :], ""))
        found = importlib.import_module(f"{OWN}.{space}".removesuffix("."))
        for part in name.removeprefix(prefix).split("."):
            found = getattr(found, part)
        return found
    except (ImportError, AttributeError):
        raise CheckpointError(f"the file needs {module}.{name}, which is not here yet") from None
