"""Levels of PyTorch's loggers, and warnings that appear once: `torch._logging`.

Nothing here writes to these loggers but what a program has asked for; libraries write to them, and set their levels.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "warning_once"]

# Components of PyTorch, and the loggers of which a level is set.
_LOGGERS = {
    "aot": ("torch._functorch.aot_autograd", "torch._functorch._aot_autograd"),
    "autograd": ("torch.autograd",),
    "c10d": ("torch.distributed.distributed_c10d", "torch.distributed.rendezvous"),
    "ddp": ("torch.nn.parallel.distributed",),
    "distributed": ("torch.distributed", "torch.nn.parallel.distributed"),
    "dtensor": ("torch.distributed._tensor", "torch.distributed.tensor"),
    "dynamic": ("torch.fx.experimental.symbolic_shapes",),
    "dynamo": ("torch._dynamo",),
    "export": ("torch._dynamo", "torch.export"),
    "fsdp": ("torch.distributed.fsdp",),
    "inductor": ("torch._inductor",),
    "onnx": ("torch.onnx",),
}


def set_logs(*, all: int | None = None, modules: dict[str, int | bool] | None = None, **components: Any) -> None:  # noqa: A002
    """Sets the levels of loggers, and switches artifacts on.

    Args:
        all (int, optional): the level of all components.
        modules (dict, optional): levels by names of loggers.
        components: a level for each component (`dynamo=logging.DEBUG`), or True for an artifact (`graph_breaks=True`),
            of which none is written here.
    """
    for names in _LOGGERS.values() if all is not None else ():
        for name in names:
            logging.getLogger(name).setLevel(all)  # type: ignore[arg-type]
    for component, level in components.items():
        for name in _LOGGERS.get(component, ()) if level is not None else ():
            logging.getLogger(name).setLevel(level)
    for name, level in (modules or {}).items():
        logging.getLogger(name).setLevel(logging.DEBUG if level is True else level)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of an artifact of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """`logger.warning`, the first time with these arguments."""
    logger_obj.warning(*args, **kwargs)
