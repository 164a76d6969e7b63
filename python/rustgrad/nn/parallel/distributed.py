"""`DistributedDataParallel`: one copy of a module in each process, whose gradients are averaged during backward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..._base import is_grad_enabled
from ..._C import Tensor
from ...distributed.group import _checked
from ...distributed.join import Join, Joinable, JoinHook
from ...distributed.reducer import Reducer, broadcast_coalesced, check_same_model
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]

_M = TypeVar("_M", bound=Module)


class DistributedDataParallel(Module, Joinable):
    """Calls `module`, its only submodule, and averages gradients over the processes of a group during backward.

    At construction all processes get the parameters and buffers of rank 0, and buffers again before each forward.

    Args:
        module (Module): at least one parameter requires a gradient; the same in all processes.
        device_ids (list of one int or device): the GPU of the module; None for a module on the CPU.
        output_device: accepted; outputs are where the module is.
        dim (int): accepted.
        broadcast_buffers (bool): whether buffers are those of rank 0 before each forward.
        init_sync (bool): whether parameters and buffers become those of rank 0 at construction.
        process_group (ProcessGroup): by default the default group.
        bucket_cap_mb (float): MiB of gradients that are reduced at a time; 25 by default.
        find_unused_parameters (bool): whether parameters may get no gradient in a backward.
        gradient_as_bucket_view (bool): whether gradients are views of what is reduced, which saves a copy.
        static_graph (bool): the same parameters get gradients in every backward; a gradient may come in parts, as with
            reentrant checkpoints. Reduction then begins at the end of backward.
        The other arguments are accepted where they are None or False.

    Raises:
        ValueError: no process group, or devices that are not those of the module.
        RuntimeError: no parameter requires a gradient, or the processes have different modules. In forward: the last
            backward left parameters without a gradient, and `find_unused_parameters` is False.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if delay_all_reduce_named_params is not None or param_to_hook_all_reduce is not None:
            raise NotImplementedError("DistributedDataParallel: delayed parameters are not supported; expected None.")
        if mixed_precision is not None:
            raise NotImplementedError("DistributedDataParallel: mixed_precision is not supported. Use autocast.")
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        group = process_group if device_mesh is None else device_mesh.get_group(mesh_dim=0)
        self.process_group = _checked(group)
        self.module = module
        self.device_mesh = device_mesh
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._module_parameters = [p for p in self._kept(module.named_parameters()) if p.requires_grad]
        if not self._module_parameters:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.device = self._module_parameters[0].device
        self.device_type, self.is_multi_device_module = self.device.type, False
        self._set_devices(device_ids, output_device)
        self.dim, self.static_graph = dim, static_graph
        self.broadcast_buffers = self.require_forward_param_sync = broadcast_buffers
        self.require_backward_grad_sync = True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self._make_reducer()
        if init_sync and self.process_group.size() > 1:
            check_same_model(self._module_parameters, self.process_group)
            broadcast_coalesced([*self._kept(module.named_parameters()), *self._buffers_to_sync()], self.process_group)

    def _kept(self, named):
        return [value for name, value in named if name not in self.parameters_to_ignore]

    def _buffers_to_sync(self):
        return self._kept(self.module.named_buffers())

    def _set_devices(self, device_ids, output_device):
        self.device_ids = None
        if not device_ids and output_device is None:
            self.output_device = None
            return
        if self.device.type == "cpu" or len(device_ids or ()) > 1:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters { ({p.device for p in self._module_parameters}) }."
            )
        self.device_ids = list(device_ids or [self.device.index or 0])
        self.output_device = self.device_ids[0] if output_device is None else output_device

    def _make_reducer(self):
        # One process has nothing to average, and no hooks.
        self.reducer = None
        if self.process_group.size() > 1:
            self.reducer = Reducer(
                self._module_parameters,
                self.process_group,
                self.bucket_bytes_cap,
                self.find_unused_parameters,
                self.static_graph,
                self.gradient_as_bucket_view,
            )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids is not None:
            from .data_parallel import _moved

            inputs, kwargs = _moved(inputs, self.device), _moved(kwargs, self.device)
        if self.reducer is not None:
            Join.notify_join_context(self)
            if is_grad_enabled():
                self.reducer.prepare(self.require_backward_grad_sync)
            if self.require_forward_param_sync and (buffers := self._buffers_to_sync()):
                broadcast_coalesced(buffers, self.process_group, self._source())
        return self.module(*inputs, **kwargs)

    def _source(self):
        """The rank whose buffers count: 0, or in `join` the last one that has inputs."""
        return Join.source_rank(self)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Forwards in this context add gradients up in each process; the next one outside averages the sums."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Lets `hook(state, bucket)` reduce each bucket: it returns a `Future` of the averaged flat tensor.

        Raises:
            TypeError: the hook is not callable. RuntimeError: there is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer is None:
            return
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (state, hook)

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A context for processes with different numbers of inputs: those that are done take part with zeros.

        Args:
            divide_by_initial_world_size (bool): averages are over all processes; False is not supported.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without inputs does in place of a forward and a backward."""
        if not kwargs.get("divide_by_initial_world_size", True):
            raise NotImplementedError("join: divide_by_initial_world_size=False is not supported; expected True.")
        return _DDPJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the module."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group of the module."""
        return self.process_group

    def _set_static_graph(self) -> None:
        """`static_graph=True`, after construction."""
        self.static_graph = True
        if self.reducer is not None:
            self.reducer.late = self.reducer.find_unused = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return {"world_size": self.process_group.size(), "module_name": type(self.module).__name__}

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Names of parameters and buffers that stay different in each process."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for name in ("process_group", "reducer", "_join_config"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = _checked(None)
        self._module_parameters = [p for p in self._kept(self.module.named_parameters()) if p.requires_grad]
        self._make_reducer()

    def __del__(self) -> None:
        reducer = self.__dict__.get("reducer")
        if reducer is not None:
            reducer.remove()


class _DDPJoinHook(JoinHook):
    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        ddp = self.ddp
        if ddp.reducer is None:
            return
        if ddp.require_forward_param_sync and (buffers := ddp._buffers_to_sync()):
            broadcast_coalesced(buffers, ddp.process_group, ddp._source())
        if ddp.require_backward_grad_sync:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        ddp = self.ddp
        tensors: list[Tensor] = [*ddp._kept(ddp.module.named_parameters()), *ddp._buffers_to_sync()]
        broadcast_coalesced(tensors, ddp.process_group, ddp._source())


def __dir__() -> list[str]:
    return __all__
