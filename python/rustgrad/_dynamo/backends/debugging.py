"""Backends that compile nothing, with which programs look at graphs, and the class of what `explain` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._absent import getattr_of
from ..._functorch.aot_autograd import make_boxed_func
from ...compiler._explain import Explanation as ExplainOutput
from .common import aot_autograd

__all__ = ["ExplainOutput", "aot_eager", "boxed_nop", "eager", "eager_noexcept"]

# Those that `lookup_backend` finds.
BACKENDS = ("aot_eager", "aot_eager_decomp_partition", "eager", "eager_noexcept", "pre_dispatch_eager")


def eager(gm: Any, fake_tensor_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
    """The graph as it is."""
    return gm.forward  # type: ignore[no-any-return]


def eager_noexcept(gm: Any, fake_tensor_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
    """The graph as it is; what it raises is an error of the backend."""

    def inner(*args: Any) -> Any:
        try:
            return gm(*args)
        except Exception as problem:
            raise RuntimeError("Unexpected exception when running generated GraphModule") from problem

    return inner


def boxed_nop(fx_g: Any, example_inputs: Any) -> Callable[..., Any]:
    """The graph as it is, called with a list of its inputs."""
    return make_boxed_func(fx_g.forward)


pre_dispatch_eager = eager
aot_eager = aot_autograd(fw_compiler=boxed_nop)
aot_eager.__name__ = "aot_eager"
aot_eager_decomp_partition = aot_eager


__getattr__ = getattr_of(__name__)
