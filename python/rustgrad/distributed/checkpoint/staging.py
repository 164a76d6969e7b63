"""Copies of state dicts, which are written while training goes on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..._C import Tensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state dict for `async_save`."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` is to be called after `stage`."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Future | dict[str, Any]:
        """A copy of a state dict, or a future of one."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Waits until the copy is made."""

    def close(self) -> None:
        """Ends threads and gives memory back."""


def copied(value: Any, into: Any = None) -> Any:
    """A copy of tensors in nested dicts, lists and tuples, on the CPU, into the tensors of an older copy where they fit."""
    if isinstance(value, Tensor):
        value = value.detach()
        if isinstance(into, Tensor) and into.shape == value.shape and into.dtype == value.dtype:
            return into.copy_(value)
        return value.cpu().clone()
    if isinstance(value, Mapping):
        old = into if isinstance(into, Mapping) else {}
        return {key: copied(inner, old.get(key)) for key, inner in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        old = into if isinstance(into, type(value)) and len(into) == len(value) else [None] * len(value)
        return type(value)(map(copied, value, old))
    import copy

    return copy.deepcopy(value)


class BlockingAsyncStager(AsyncStager):
    """Copies at once.

    Args:
        cache_staged_state_dict (bool): the copy is kept, and its memory used for the next one.
        type_check (bool): accepted.
    """

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """A copy of a state dict on the CPU."""
        made = copied(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = made
        return made

    def synchronize_staging(self) -> None:
        """Nothing: the copy was made at once."""

    def close(self) -> None:
        """Nothing: there are no threads."""


@dataclass
class StagingOptions:
    """How `DefaultStager` copies; memory is the CPU's, so only `use_async_staging` makes a difference."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies on a thread.

    Args:
        config (StagingOptions): whether on a thread.
    """

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = config or StagingOptions()
        self._pool = ThreadPoolExecutor(1) if self._config.use_async_staging else None
        self._future: Future | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Future | dict[str, Any]:
        """A future of a copy of a state dict, which must not change until it is there; or the copy."""
        if self._pool is None:
            return copied(state_dict)
        self._future = self._pool.submit(copied, state_dict)
        return self._future

    def synchronize_staging(self) -> None:
        """Waits until the copy is made."""
        if self._future is not None:
            self._future.result()

    def close(self) -> None:
        """Ends the thread."""
        if self._pool is not None:
            self._pool.shutdown()
