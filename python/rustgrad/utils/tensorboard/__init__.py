"""`SummaryWriter`: logs for TensorBoard, written by the package tensorboardX (`pip install rustgrad[tensorboard]`)."""

from __future__ import annotations

import functools
from typing import Any

from ..._base import Tensor

try:
    import tensorboardX as _package
    from tensorboardX import FileWriter as FileWriter
    from tensorboardX.record_writer import RecordWriter as RecordWriter
except ImportError as error:
    raise ImportError(
        "rustgrad.utils.tensorboard: needs the package tensorboardX. Install it with `pip install rustgrad[tensorboard]`.",
        name="tensorboardX",
    ) from error

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]


def _arrays(value):
    """The value with NumPy arrays for tensors, which tensorboardX knows of PyTorch's alone."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_arrays(v) for v in value)
    return {k: _arrays(v) for k, v in value.items()} if isinstance(value, dict) else value


def _taking_tensors(method):
    @functools.wraps(method)
    def call(self, *args: Any, **kwargs: Any) -> Any:
        return method(self, *map(_arrays, args), **_arrays(kwargs))

    return call


class SummaryWriter(_package.SummaryWriter):
    """tensorboardX's writer, whose `add_scalar`, `add_histogram`, `add_image` .. take tensors."""

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Draws a model: what it calls for one input, traced by `jit.trace`.

        Args:
            model (Module): the model.
            input_to_model (tensor or tuple of tensors): its inputs.
            verbose (bool): whether the graph is printed.
            use_strict_trace (bool): see `jit.trace`.

        Raises:
            RuntimeError: the call of the model has no form as a graph.
        """
        from ._pytorch_graph import graph

        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))


for _name in dir(_package.SummaryWriter):
    if _name.startswith("add_") and _name != "add_graph":
        setattr(SummaryWriter, _name, _taking_tensors(getattr(_package.SummaryWriter, _name)))


def __dir__() -> list[str]:
    return __all__
