"""Runs a model for the recorder: what it binds to its buffers is written to them, as in the exported program."""

from __future__ import annotations

import warnings
from typing import Any

from .._base import Tensor
from ..nn.modules.module import Module

__all__ = ["Program"]


class Program:
    """A module as the recorder calls it."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        modules = list(self.module.modules())
        buffers = [(m, dict(m._buffers)) for m in modules]
        attributes = [(m, dict(m.__dict__)) for m in modules]
        names = {id(m): name for name, m in self.module.named_modules()}
        try:
            result = self.run_program(args, kwargs)
            for module, before in buffers:
                for name, old in before.items():
                    new = module._buffers.get(name)
                    if isinstance(old, Tensor) and isinstance(new, Tensor) and new is not old:
                        old.copy_(new)
            self._warn(attributes, names)
            return result
        finally:
            for module, before in buffers:
                module._buffers.update(before)
            for module, before in attributes:
                # Counters and caches of numbers stay: the next run is like the first only without tensors of this one.
                for name, value in list(module.__dict__.items()):
                    if isinstance(value, Tensor) and before.get(name) is not value:
                        module.__dict__[name] = before.get(name)
                        if name not in before:
                            del module.__dict__[name]

    def run_program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the module. Frames up to this one are not of the program."""
        return self.module(*args, **kwargs)

    def _warn(self, attributes: list[tuple[Module, dict[str, Any]]], names: dict[int, str]) -> None:
        found = [
            ".".join(filter(None, ("self", names[id(module)], name)))
            for module, before in attributes
            for name, value in module.__dict__.items()
            if isinstance(value, Tensor) and before.get(name) is not value
        ]
        if found:
            plural = "s" if len(found) > 1 else ""
            were = "were" if plural else "was"
            warnings.warn(
                f"The tensor attribute{plural} {', '.join(found)} {were} assigned during export. Such attributes must be registered as "
                "buffers using the `register_buffer` API "
                "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer).",
                stacklevel=2,
            )
