"""`DistributedDataParallel`: needs a process group, which cannot be made here."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Averages gradients over processes.

    Raises:
        ValueError: always: there are no process groups. Programs ask `distributed.is_initialized()` first.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group. "
            "DistributedDataParallel: there are no process groups in rustgrad. Use the module itself."
        )


def __dir__() -> list[str]:
    return __all__
