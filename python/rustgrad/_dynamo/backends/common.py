"""Backends that compile graphs of ATen ops: of the results, and of the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._absent import getattr_of

__all__ = ["AotAutograd", "aot_autograd"]


class AotAutograd:
    """A backend that makes graphs of ATen ops of its graph, and has compilers compile them.

    Args:
        settings: those of `functorch.compile.aot_function`: `fw_compiler`, `bw_compiler`, `inference_compiler`, `decompositions`,
            `partition_fn`.
    """

    def __init__(self, **settings: Any) -> None:
        self.__name__ = "compiler_fn"
        self.kwargs = settings

    def __call__(self, gm: Any, example_inputs: Any, **options: Any) -> Callable[..., Any]:
        """What is called in the place of the graph."""
        from ..._functorch.aot_autograd import aot_module_simplified

        return aot_module_simplified(gm, example_inputs, **self.kwargs)


def aot_autograd(**kwargs: Any) -> AotAutograd:
    """The backend that has `fw_compiler` and the others compile graphs of ATen ops: see `AotAutograd`."""
    return AotAutograd(**kwargs)


__getattr__ = getattr_of(__name__)
