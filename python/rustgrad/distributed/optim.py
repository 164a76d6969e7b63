"""`rustgrad.distributed.optim`: an optimizer whose state is split over the processes of a group."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from .._absent import getattr_of
from .._C import Tensor
from ..autograd.grad_mode import enable_grad
from ..optim import Optimizer
from ._refusals import refusing_class
from .group import _checked
from .join import Joinable, JoinHook
from .objects import broadcast_object_list
from .reducer import broadcast_coalesced

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

DistributedOptimizer = refusing_class(
    __name__, "DistributedOptimizer", "use an optimizer of each process with DistributedDataParallel."
)
PostLocalSGDOptimizer = refusing_class(
    __name__, "PostLocalSGDOptimizer", "use an optimizer of each process with DistributedDataParallel."
)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """`optimizer_class(params, **defaults)`, where each process steps its share of the parameters and has their state.

    After a step each process broadcasts its parameters. Parameters go, the largest first, to the process that has least.

    Args:
        params (iterable): parameters, or dicts of groups; the same in all processes.
        optimizer_class (type): the optimizer that does the steps, in `optim`.
        process_group (ProcessGroup, optional): Default: the default group.
        parameters_as_bucket_view (bool): accepted.
        overlap_with_ddp (bool): not supported.
        **defaults: options of `optimizer_class`.

    Raises:
        NotImplementedError: `overlap_with_ddp` is True.
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
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not supported; expected False.")
        self.process_group = _checked(process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self._owner: dict[int, int] = {}
        self._sizes = [0] * self.world_size
        self._gathered: dict[str, Any] | None = None
        self.optim: Any = None
        super().__init__(params, defaults)
        for group in self.param_groups:
            self._share_out(group["params"])
        self.optim = optimizer_class([self._own_part(group) for group in self.param_groups], **defaults)
        for whole, part in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in part.items():
                whole.setdefault(name, value)
        self.defaults, self.state = self.optim.defaults, self.optim.state

    def _share_out(self, parameters: list[Tensor]) -> None:
        for parameter in sorted(parameters, key=lambda p: -p.numel()):
            rank = self._sizes.index(min(self._sizes))
            self._owner[id(parameter)] = rank
            self._sizes[rank] += parameter.numel()

    def _own_part(self, group: dict[str, Any]) -> dict[str, Any]:
        return {**group, "params": [p for p in group["params"] if self._owner[id(p)] == self.rank]}

    def _copy_options(self) -> None:
        """Options that a scheduler has changed."""
        for whole, part in zip(self.param_groups, self.optim.param_groups, strict=True):
            part.update({name: value for name, value in whole.items() if name != "params"})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """A step of the optimizer for this process' share, then the shares of the others."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._copy_options()
        self.optim.step(**kwargs)
        self._exchange()
        return loss

    def _exchange(self):
        if self.world_size == 1:
            return
        for rank in range(self.world_size):
            shares = [p for group in self.param_groups for p in group["params"] if self._owner[id(p)] == rank]
            if shares:
                broadcast_coalesced(shares, self.process_group, rank)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters to the optimizer."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self._share_out(self.param_groups[-1]["params"])
            self.optim.add_param_group(self._own_part(self.param_groups[-1]))

    def _numbers(self) -> dict[int, int]:
        parameters = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(parameters)}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Sends the state of all shares to process `to`, where `state_dict` then has it; all processes call it."""
        numbers = self._numbers()
        own = {numbers[id(p)]: state for p, state in self.state.items()}
        from ..serialization import load, save

        stream = io.BytesIO()
        save(own, stream)
        states: dict[int, Any] = {}
        for rank in range(self.world_size):
            sent = [stream.getvalue() if rank == self.rank else None]
            if self.world_size > 1:
                broadcast_object_list(sent, group=self.process_group, group_src=rank)
            if self.process_group.ranks[self.rank] == to:
                states.update(load(io.BytesIO(sent[0]), weights_only=False))  # type: ignore[arg-type]
        self._copy_options()
        groups = []
        for group in self.param_groups:
            groups.append({**group, "params": [numbers[id(p)] for p in group["params"]]})
        here = self.process_group.ranks[self.rank] == to
        self._gathered = {"state": dict(sorted(states.items())), "param_groups": groups} if here else None

    def state_dict(self) -> dict[str, Any]:
        """The whole state that `consolidate_state_dict` has gathered.

        Raises:
            RuntimeError: it was not called since, or the state went to another process.
        """
        if self.world_size == 1:
            self.consolidate_state_dict()
        if self._gathered is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` "
                "on all ranks beforehand if you meant to save the global state."
            )
        return self._gathered

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Replaces the state: each process takes its share of a whole state."""
        numbers = self._numbers()
        groups, state, count = [], {}, 0
        for whole, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            options = {name: value for name, value in saved.items() if name != "params"}
            whole.update(options)
            part = []
            for parameter in whole["params"]:
                if self._owner[id(parameter)] == self.rank:
                    if numbers[id(parameter)] in state_dict["state"]:
                        state[count] = state_dict["state"][numbers[id(parameter)]]
                    part.append(count)
                    count += 1
            groups.append({**options, "params": part})
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A step for a process that has no inputs."""
        return _StepHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group


class _StepHook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
