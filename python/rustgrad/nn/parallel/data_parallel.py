"""`DataParallel` for one device: the wrapper that programs expect, with the whole batch on the first device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from ... import cuda
from ..._base import Tensor, device, is_grad_enabled
from ..._typing import DeviceLike
from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


def _moved(value, place):
    """A copy of nested tuples, lists and dicts with their tensors on a device."""
    if isinstance(value, Tensor):
        return value.to(place)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(v, place) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(v, place) for v in value)
    if isinstance(value, dict):
        return type(value)((k, _moved(v, place)) for k, v in value.items())
    return value


def _index(place):
    return place if isinstance(place, int) else device(place).index or 0


class DataParallel(Module, Generic[T]):
    """Calls `module`, which is its only submodule. Results are those of several devices, all of it on the first.

    Where `cuda` is available (`python -m rustgrad`), module and inputs are moved to `device_ids[0]`; elsewhere nothing moves.

    Args:
        module (Module): the module.
        device_ids (sequence of int or device, optional): only the first is used. Default: the current device.
        output_device (int or device, optional): where the output is; by default where it is computed.
        dim (int): the batch dimension, which is not split.
    """

    module: T

    def __init__(
        self,
        module: T,
        device_ids: Sequence[int | DeviceLike] | None = None,
        output_device: int | DeviceLike | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []
        if not cuda.is_available():
            return
        self.dim = dim
        self.device_ids = [_index(i) for i in device_ids] if device_ids else [cuda.current_device()]
        self.output_device = self.device_ids[0] if output_device is None else _index(output_device)
        self.src_device_obj = device("cuda", self.device_ids[0])
        self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) but "
                    f"found one of them on device: {tensor.device}"
                )
        inputs, kwargs = _moved(inputs, self.src_device_obj), _moved(kwargs, self.src_device_obj)
        return _moved(self.module(*inputs, **kwargs), device("cuda", self.output_device))

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[int | DeviceLike]
    ) -> Any:
        """Inputs and keyword arguments for each device: `nn.parallel.scatter` along `dim`."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def replicate(self, module: T, device_ids: Sequence[int | DeviceLike]) -> list[T]:
        """A copy of the module for each device; gradients flow back where they are recorded."""
        return replicate(module, device_ids, not is_grad_enabled())

    def parallel_apply(self, replicas: Sequence[T], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """The result of each copy."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)] or None)

    def gather(self, outputs: Any, output_device: int | DeviceLike) -> Any:
        """The results of all devices on one: `nn.parallel.gather` along `dim`."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | DeviceLike] | None = None,
    output_device: int | DeviceLike | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """The function form of `DataParallel`: `module(*inputs, **module_kwargs)`.

    Raises:
        RuntimeError: no `cuda` device is available.
    """
    if not cuda.is_available():
        raise RuntimeError("device type could not be determined")
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


def __dir__() -> list[str]:
    return __all__
