"""Names: of functions as code refers to them, and of values in a graph's code."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import keyword
import operator
import re
import sys
from typing import Any

from .._ops import OpOverload, OpOverloadPacket

# Namespaces in which a function is looked for, with the name that code uses.
_SPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")


@functools.cache
def _names_of(space: str) -> tuple[Any, frozenset[str]]:
    """A namespace and its names: what it is asked for in vain it looks for among all names that are like it."""
    module = importlib.import_module("rustgrad" + space.removeprefix("torch"))
    return module, frozenset(dir(module))


def public_name(function: Any) -> str | None:
    """`torch.relu`, `torch.nn.functional.relu` ...; None for what is in no public namespace."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        return None
    for space in _SPACES:
        module, names = _names_of(space)
        if (name in names or name[:1] == "_") and getattr(module, name, None) is function:
            return f"{space}.{name}"
    return None


def qualified_name(function: Any) -> str:
    """The name by which a function is reached from its module."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{function}"
    if getattr(builtins, name, None) is function:
        return name
    if public := public_name(function):
        return public
    module = getattr(function, "__module__", None) or "unknown"
    module = module.replace("_operator", "operator")
    if module.split(".")[0] == "rustgrad":
        module = "torch" + module.removeprefix("rustgrad")
    name = getattr(function, "__qualname__", name)
    return f"{module}.{name if name.isidentifier() else function.__name__}"


# Functions of `nn.functional` that are ops in PyTorch: what they are called with is kept. The others are written in Python there and pass
# on their arguments with the defaults.
_OPS = frozenset(
    "gelu softplus prelu softshrink hardshrink logsigmoid linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d conv_tbc avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d one_hot pixel_shuffle pixel_unshuffle "
    "channel_shuffle native_channel_shuffle cosine_similarity pairwise_distance pdist scaled_dot_product_attention relu_ elu_ "
    "selu_ celu_ leaky_relu_ rrelu_ hardtanh_ threshold_ sigmoid tanh".split()
)
_IN_PYTHON = frozenset(
    f"torch.{n}" for n in "split norm unique unique_consecutive stft istft tensordot cdist meshgrid".split()
)


def with_defaults(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call as PyTorch's functions pass them on: those that have defaults by name, with the defaults."""
    space, _, leaf = (public_name(function) or "").rpartition(".")
    if not (space == "torch.nn.functional" and leaf not in _OPS or f"{space}.{leaf}" in _IN_PYTHON):
        return args, kwargs
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs
    given, named = [], {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += bound.arguments.get(name, ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= bound.arguments.get(name, {})
        elif parameter.default is parameter.empty:
            given.append(bound.arguments[name])
        elif name in bound.arguments or parameter.default is not ... and name != "cudnn_enable":
            named[name] = bound.arguments.get(name, parameter.default)
    return tuple(given), named


def is_ours(value: Any) -> bool:
    """Whether code reaches a value as `torch...`."""
    if public_name(value) or isinstance(value, (OpOverload, OpOverloadPacket)):
        return True
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
    if module.split(".")[0] not in ("rustgrad", "torch"):
        return False
    found = sys.modules.get("rustgrad" + module.removeprefix("rustgrad").removeprefix("torch"))
    return getattr(found, name, None) is value


def is_operator(function: Any) -> bool:
    """Whether a function is of the module `operator`."""
    return getattr(function, "__module__", None) == "_operator" and hasattr(operator, function.__name__)


def snake_case(name: str) -> str:
    """`BatchNorm2d` as `batch_norm2d`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


class Namespace:
    """The names in use in a graph; a new one gets a number if it is taken."""

    def __init__(self) -> None:
        self._of: dict[Any, str] = {}
        self._used: set[str] = set()
        self._last: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A name like `candidate` that no other object has; that of `obj` if it has one."""
        if obj is not None and obj in self._of:
            return self._of[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = "_" + candidate
        numbered = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (numbered.group(1), int(numbered.group(2))) if numbered else (candidate, None)
        while candidate in self._used or self._reserved(candidate, obj):
            number = self._last.get(base, 0) + 1 if number is None else number + 1
            candidate = f"{base}_{number}"
        if number is not None:
            self._last[base] = max(number, self._last.get(base, 0))
        self._used.add(candidate)
        if obj is not None:
            self._of[obj] = candidate
        return candidate

    @staticmethod
    def _reserved(name, obj):
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        return name in ("torch", "device", "inf", "nan", "NoneType")

    def rename(self, obj: Any, name: str) -> None:
        """Gives an object a name that is taken from now on."""
        self._of[obj] = name
        self._used.add(name)
