"""`autocast`: a region in which chosen ops run in a lower precision, and others in float32.

The casts are made where ops are dispatched, so functions, methods, operators and modules all take part; which op casts to
what is PyTorch's list for the device. This file holds the region, its state by device, and the decorators of custom functions.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from .. import _C
from .._base import Tensor, bfloat16, float16, float64
from .._C import dtype as _dtype
from .._typing import Self

F = TypeVar("F", bound=Callable[..., Any])
get_autocast_cpu_dtype: Callable[[], _dtype]
set_autocast_cpu_dtype: Callable[[_dtype], None]
is_autocast_cpu_enabled: Callable[[], bool]
set_autocast_cpu_enabled: Callable[[bool], None]
get_autocast_gpu_dtype: Callable[[], _dtype]
set_autocast_gpu_dtype: Callable[[_dtype], None]
get_autocast_ipu_dtype: Callable[[], _dtype]
set_autocast_ipu_dtype: Callable[[_dtype], None]
is_autocast_ipu_enabled: Callable[[], bool]
set_autocast_ipu_enabled: Callable[[bool], None]
get_autocast_xla_dtype: Callable[[], _dtype]
set_autocast_xla_dtype: Callable[[_dtype], None]
is_autocast_xla_enabled: Callable[[], bool]
set_autocast_xla_enabled: Callable[[bool], None]

__all__ = [
    "autocast",
    "autocast_decorator",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]


def _checked(function, device_type):
    if not isinstance(device_type, str):
        raise TypeError(
            f"{function}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}"
        )
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether there is an autocast for a kind of device.

    Raises:
        RuntimeError: `device_type` is no kind of device.
    """
    return _C._autocast_kind(_checked("is_autocast_available", device_type))


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on in this thread for a kind of device.

    Raises:
        RuntimeError: `device_type` is no kind of device, or one without autocast.
    """
    return _C._autocast_state(_checked("is_autocast_enabled", device_type))[0]


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switches autocast on or off in this thread: `set_autocast_enabled("cpu", True)`; a bool alone is for "cuda".

    Prefer `with autocast(..)`, which also restores the previous state.

    Raises:
        TypeError: the arguments are not a string and a bool, or a bool.
        RuntimeError: `device_type` is no kind of device, or one without autocast.
    """
    kind, on = ("cuda", device_type) if enabled is None else (device_type, enabled)
    if not isinstance(on, bool):
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' must be bool, not {type(on).__name__}")
    _C._set_autocast_enabled(_checked("set_autocast_enabled", kind), on)


def get_autocast_dtype(device_type: str) -> _dtype:
    """The dtype of the region: by default bfloat16 for "cpu" and float16 for "gpu" and "cuda".

    Raises:
        RuntimeError: `device_type` is no kind of device, or one without autocast.
    """
    return _C._autocast_state(_checked("get_autocast_dtype", device_type))[1]


def set_autocast_dtype(device_type: str, dtype: _dtype) -> None:
    """Sets the dtype of the region for a kind of device in this thread.

    Raises:
        TypeError: `dtype` is not a dtype.
        RuntimeError: `device_type` is no kind of device, or one without autocast.
    """
    _C._set_autocast_dtype(_checked("set_autocast_dtype", device_type), dtype)


def autocast_decorator(autocast_instance: autocast, func: F) -> F:
    """`func` run inside a region."""

    @functools.wraps(func)
    def decorate_autocast(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """A region in which products run in a lower precision and sensitive functions in float32; also a decorator.

    Wrap the forward pass and the loss, and leave `backward` outside: it runs in the dtypes of the forward pass. Parameters stay
    in float32; a parameter is cast once per outermost region. In-place and `out=` calls never cast, nor do float64 tensors.

    Args:
        device_type (str): the tensors that take part: "cpu", "gpu"; "cuda" under `python -m rustgrad`, else it is disabled
            with a warning.
        dtype (dtype, optional): bfloat16 or float16. Default: `get_autocast_dtype(device_type)`.
        enabled (bool): False makes a region without casts, such as one inside another.
        cache_enabled (bool, optional): whether casts of parameters are kept until the outermost region ends. Default: as it is.

    Raises:
        ValueError: `device_type` is not a string.
        RuntimeError: `device_type` is no kind of device, or one without autocast.
    """

    def __init__(
        self,
        device_type: str,
        dtype: _dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._possible()

    def _possible(self) -> bool:
        """Whether the region can be on; warns if not."""
        supported = [bfloat16, float16]
        if _C.device(self.device).type not in ("cpu", "gpu"):
            text = f"{self.device.upper()} is not available. Disabling autocast. Use device_type='cpu' or 'gpu'."
        elif self.fast_dtype not in supported:
            text = (
                f"In {self.device.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{self.device.upper()} Autocast only supports dtypes of {', '.join(map(str, supported))} currently."
            )
        else:
            return True
        level = 3 if type(self) is autocast else 4
        warnings.warn(text, stacklevel=level)
        return False

    def __enter__(self) -> Self:
        self.prev_cache_enabled = _C.is_autocast_cache_enabled()
        self.prev, self.prev_fastdtype = _C._autocast_state(self.device)
        _C._set_autocast_dtype(self.device, self.fast_dtype)
        _C._set_autocast_enabled(self.device, self._enabled)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _C._set_autocast_enabled(self.device, self.prev)
        _C._set_autocast_dtype(self.device, self.prev_fastdtype)
        _C.set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: F) -> F:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def _is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _cast(value: Any, device_type: str, dtype: _dtype) -> Any:
    """Casts a tensor that takes part in autocast, and those in mappings and iterables."""
    if isinstance(value, Tensor):
        kind = _C.device(device_type).type
        takes_part = value.is_floating_point() and value.device.type == kind and value.dtype != float64
        return value.to(dtype) if takes_part else value
    if isinstance(value, (str, bytes)) or _is_array(value):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        cast = (_cast(v, device_type, dtype) for v in value)
        return type(value)(cast) if isinstance(value, (list, tuple)) else cast
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: _dtype | None = None
) -> Callable[..., Any]:
    """Decorates the `forward` of a custom `autograd.Function` that is called under autocast.

    Args:
        device_type (str): the kind of device whose autocast is meant.
        cast_inputs (dtype, optional): under autocast, `forward` gets its floating-point tensors in this dtype and runs
            with autocast off. By default it runs with autocast as it is.

    Raises:
        ValueError: `device_type` is not a string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(ctx, *args, **kwargs):
        ctx._dtype = get_autocast_dtype(device_type)
        on = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates the `backward` of a custom `autograd.Function`: it runs with autocast as `forward` did under `custom_fwd`.

    Raises:
        ValueError: `device_type` is not a string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(ctx, *args, **kwargs):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorate_bwd


def _deprecated_names() -> dict[str, Callable[..., Any]]:
    """`get_autocast_cpu_dtype` and the like: the state's functions with the device in their name."""

    def make(name, kind, function, takes_value):
        replacement = name.replace(f"_{'gpu' if kind == 'cuda' else kind}", "")
        hint = f"Please use torch.{replacement}('{kind}'{', ..' if takes_value else ''}) instead."

        def call(*value: Any) -> Any:
            if len(value) != takes_value:
                raise TypeError(f"{name}() takes {int(takes_value)} arguments but {len(value)} were given")
            warnings.warn(f"torch.{name}() is deprecated. {hint}", DeprecationWarning, stacklevel=2)
            return function(kind, *value)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"Deprecated: `{replacement}('{kind}')`."
        return call

    names = {}
    for short, kind in (("cpu", "cpu"), ("gpu", "cuda"), ("xla", "xla"), ("ipu", "ipu")):
        names[f"get_autocast_{short}_dtype"] = (kind, get_autocast_dtype, False)
        names[f"set_autocast_{short}_dtype"] = (kind, set_autocast_dtype, True)
        if short != "gpu":
            names[f"is_autocast_{short}_enabled"] = (kind, is_autocast_enabled, False)
            names[f"set_autocast_{short}_enabled"] = (kind, set_autocast_enabled, True)
    return {name: make(name, *parts) for name, parts in names.items()}


_DEPRECATED = _deprecated_names()
globals().update(_DEPRECATED)


def __dir__() -> list[str]:
    return __all__
