"""Compilers of graphs that compile nothing."""

from __future__ import annotations

from typing import Any

from .._absent import getattr_of
from .aot_autograd import make_boxed_compiler

__all__ = ["nop", "print_compile"]


@make_boxed_compiler
def nop(fx_g: Any, _: Any) -> Any:
    """The graph as it is."""
    return fx_g


@make_boxed_compiler
def print_compile(fx_g: Any, _: Any) -> Any:
    """The graph as it is; its code is printed."""
    print(fx_g.code)
    return fx_g


__getattr__ = getattr_of(__name__)
