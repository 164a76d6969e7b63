"""Copies of a module on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..._typing import DeviceLike
from ..modules.module import Module
from .scatter_gather import _device

__all__ = ["replicate"]

T = TypeVar("T", bound=Module)


def _copied(tensors, place, detach):
    """By identity, so that what modules share their copies share too; gradients reach the originals unless `detach`."""
    return {id(t): (t.detach() if detach else t).to(place, copy=True) for t in tensors}


def _replica(network, place, detach):
    copies = _copied([*network.parameters(), *network.buffers()], place, detach)
    modules = {id(module): module._replicate_for_data_parallel() for module in network.modules()}
    for module in network.modules():
        replica = modules[id(module)]
        replica._former_parameters = {}
        for key, child in module._modules.items():
            replica._modules[key] = None if child is None else modules[id(child)]
        for key, param in module._parameters.items():
            if param is None:
                replica._parameters[key] = None
            else:  # no leaf any more, so an attribute like others
                replica._former_parameters[key] = copies[id(param)]
                object.__setattr__(replica, key, copies[id(param)])
        for key, buffer in module._buffers.items():
            replica._buffers[key] = None if buffer is None else copies[id(buffer)]
    return modules[id(network)]


def _broadcast_coalesced_reshape(tensors, devices, detach=False):
    """The tensors on each device, a list for each, to which gradients of the copies flow back unless `detach`: libraries replicate with it."""
    if not tensors:
        return [[] for _ in devices] if detach else []
    return [[(t.detach() if detach else t).to(_device(place)) for t in tensors] for place in devices]


def replicate(network: T, devices: Sequence[int | DeviceLike], detach: bool = False) -> list[T]:
    """One copy of a module for each device.

    Parameters of copies are copies of those of `network`, to which gradients flow back.

    Args:
        network (Module): the module.
        devices (sequence of int or device): where the copies are.
        detach (bool): whether gradients end at the copies.
    """
    return [_replica(network, _device(place), detach) for place in devices]


def __dir__() -> list[str]:
    return __all__
