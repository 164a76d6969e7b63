"""`rustgrad.distributed.optim`: an optimizer whose state is split over the processes of a group, of which there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._absent import getattr_of
from ..optim import Optimizer
from .group import _checked, get_rank

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """`optimizer_class(params, **defaults)`, with the state of this process' share of the parameters: all of them.

    Args:
        params (iterable): parameters, or dicts of groups.
        optimizer_class (type): the optimizer that does the steps, in `optim`.
        process_group (ProcessGroup, optional): a group of one process. Default: the default group.
        parameters_as_bucket_view, overlap_with_ddp (bool): accepted; there is nothing to pack or to overlap with.
        **defaults: options of `optimizer_class`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        _checked(process_group)
        self.process_group = process_group
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self._share()

    def _share(self) -> None:
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """A step of the optimizer."""
        return self.optim.step(closure, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters to the optimizer."""
        if hasattr(self, "state") and self.state is self.optim.state:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Does nothing: process `to` has the whole state."""

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Replaces the state of the optimizer."""
        self.optim.load_state_dict(state_dict)
        self._share()

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return get_rank(self.process_group)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
