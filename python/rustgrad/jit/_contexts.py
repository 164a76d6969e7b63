"""Blocks of `with` in TorchScript: the classes that archives have for them, and what these do when they are read.

PyTorch compiles the Python of `no_grad` and of its kin into each archive that uses one. `autocast` is an empty class there,
which its compiler knows by name, and `record_function` calls two ops.
"""

from __future__ import annotations

import inspect
from typing import Any

from ._codes import code_of, dtype_of

__all__ = ["AUTOCAST", "context_of"]


def _enter_autocast(block: Any) -> Any:
    from ..amp import autocast

    values = block._values
    made = autocast(values["device"], dtype=dtype_of(values["fast_dtype"]), enabled=values["_enabled"])
    # Names of attributes do not start with two underscores.
    values.setdefault("__open", []).append(made)
    made.__enter__()
    return block


def _exit_autocast(block: Any, *error: Any) -> None:
    block._values["__open"].pop().__exit__(None, None, None)


# Methods of the class `autocast` of archives.
AUTOCAST = {"__enter__": _enter_autocast, "__exit__": _exit_autocast}

_GRAD_MODE = """
class {name}:
  prev : bool
  {field}def __init__(self: {own}{parameter}) -> NoneType:
    self.prev = False
    {keep}return None
  def __enter__(self: {own}) -> NoneType:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled({mode})
    return None
  def __exit__(self: {own}, exc_type: Any, exc_value: Any, traceback: Any) -> NoneType:
    torch.set_grad_enabled(self.prev)
    return None
"""
_AUTOCAST = """
class autocast:
  fast_dtype : int
  _enabled : bool
  device : str
  def __init__(self: {own}, device_type: str, dtype: int, enabled: bool) -> NoneType:
    self.fast_dtype = dtype
    self._enabled = enabled
    self.device = device_type
    return None
  def __enter__(self: {own}) -> {own}:
    return self
  def __exit__(self: {own}, exc_type: Any, exc_value: Any, traceback: Any) -> NoneType:
    return None
"""
_RECORD = """
class record_function:
  name : str
  args : Optional[str]
  record : Optional[__torch__.torch.classes.profiler._RecordFunction]
  def __init__(self: {own}, name: str, args: Optional[str]=None) -> NoneType:
    self.name = name
    self.args = args
    self.record = None
    return None
  def __enter__(self: {own}) -> {own}:
    self.record = ops.profiler._record_function_enter_new(self.name, self.args)
    return self
  def __exit__(self: {own}, exc_type: Any, exc_value: Any, traceback: Any) -> NoneType:
    record = self.record
    if record is not None:
      ops.profiler._record_function_exit(record)
    return None
"""


def context_of(function: Any, args: list[Any], kwargs: dict[str, Any]) -> tuple[str, str, list[Any]] | None:
    """For a call of a class of this package whose objects are blocks: its qualified name in an archive, its text, its arguments.

    None for other functions.
    """
    from ..amp import autocast
    from ..autograd.grad_mode import enable_grad, no_grad, set_grad_enabled
    from ..autograd.profiler import record_function

    if function in (no_grad, enable_grad, set_grad_enabled):
        name = f"__torch__.torch.autograd.grad_mode.{function.__name__}"
        is_set = function is set_grad_enabled
        parts = {
            "field": "mode : bool\n  " if is_set else "", "parameter": ", mode: bool" if is_set else "",
            "keep": "self.mode = mode\n    " if is_set else "",
            "mode": "self.mode" if is_set else str(function is enable_grad),
        }  # fmt: skip
        text = _GRAD_MODE.format(name=function.__name__, own=name, **parts)
        return name, text.strip(), [*args, *kwargs.values()]
    if function is record_function:
        name = "__torch__.torch.autograd.profiler.record_function"
        return name, _RECORD.format(own=name).strip(), [*args, *kwargs.values()]
    if isinstance(function, type) and issubclass(function, autocast):
        made, given = function(*args, **kwargs), inspect.signature(function).bind(*args, **kwargs).arguments
        name = "__torch__.torch.amp.autocast_mode.autocast"
        settings = [made.device, code_of(made.fast_dtype), bool(given.get("enabled", True))]
        return name, _AUTOCAST.format(own=name).strip(), settings
    return None
