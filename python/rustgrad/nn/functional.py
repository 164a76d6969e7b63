"""`nn.functional`: the functions behind the modules. They are ops of the table (`nn.functional.*`)."""

from __future__ import annotations

import warnings

from .._absent import getattr_of
from .._base import ops, sigmoid, tanh

__all__ = ["legacy_reduction", "sigmoid", "tanh"]


def legacy_reduction(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The `reduction` that the legacy arguments mean, with the deprecation warning."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=4,
        )
    return reduction


def _inplace(function):
    def wrapper(input, *args, **kwargs):
        return function(input, *args, **kwargs, inplace=True)

    wrapper.__name__ = wrapper.__qualname__ = f"{function.__name__}_"
    wrapper.__doc__ = f"In-place form of `{function.__name__}`."
    wrapper.in_place_of = function
    return wrapper


def _fill_namespace(names):
    """Adds the ops of the table, unless a function above has the name, and in-place forms under their own names."""
    for name, op in ops.items():
        public = name.removeprefix("nn.functional.")
        if public != name and public[0] != "_":
            names.setdefault(public, op)
    for name in ("relu", "elu", "selu", "celu", "leaky_relu", "hardtanh", "threshold"):
        if name in names:
            names.setdefault(name + "_", _inplace(names[name]))
    names["__all__"] = sorted({*names["__all__"], *(n.removeprefix("nn.functional.") for n in ops if "nn.f" in n)})


_fill_namespace(globals())


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
