"""The functions of NCCL, which is not here: `is_available` says so, and the others raise RuntimeError."""

from __future__ import annotations

import warnings
from collections.abc import Container
from typing import Any, NoReturn

from .. import _C

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]

SUM = 0


def is_available(tensors: Any) -> bool:
    """False, with a warning."""
    warnings.warn("PyTorch is not compiled with NCCL support", stacklevel=2)
    return False


def _refuse(name: str, *collections: Any) -> NoReturn:
    for given in collections:
        if not isinstance(given, Container) or isinstance(given, _C.Tensor):
            raise TypeError("Inputs should be a collection of tensors")
    raise RuntimeError(f"nccl.{name}: NCCL is not here. Hint: torch.distributed communicates between processes.")


def version() -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("version")


def unique_id() -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("unique_id")


def init_rank(num_ranks: int, uid: Any, rank: int) -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("init_rank")


def all_reduce(inputs: Any, outputs: Any = None, op: int = SUM, streams: Any = None, comms: Any = None) -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("all_reduce", inputs, inputs if outputs is None else outputs)


def reduce(
    inputs: Any, output: Any = None, root: int = 0, op: int = SUM, streams: Any = None, comms: Any = None, *,
    outputs: Any = None,
) -> NoReturn:  # fmt: skip
    """RuntimeError: there is no NCCL."""
    _refuse("reduce", inputs)


def broadcast(inputs: Any, root: int = 0, streams: Any = None, comms: Any = None) -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("broadcast", inputs)


def all_gather(inputs: Any, outputs: Any, streams: Any = None, comms: Any = None) -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("all_gather", inputs, outputs)


def reduce_scatter(inputs: Any, outputs: Any, op: int = SUM, streams: Any = None, comms: Any = None) -> NoReturn:
    """RuntimeError: there is no NCCL."""
    _refuse("reduce_scatter", inputs, outputs)
