"""The names that a checkpoint may use: the values, classes and functions that data needs, and those the caller allowed.

Naming is not calling: `calls` lists what a file may call, `may_be_made` the classes whose instances it may make and
give a state.
"""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

from . import _C, _formats, _utils
from ._C import Size, Tensor
from ._C import device as _device
from ._formats import get_layout
from ._unpickler import CheckpointError
from .storage import _KINDS

# Modules that cannot be allowed.
BLOCKED = ("sys", "os", "posix", "nt")
OWN = __name__.partition(".")[0]
_DTYPES = {str(d).rpartition(".")[2]: d for d in vars(_C).values() if isinstance(d, _C.dtype)}
_REBUILDERS = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
               "_rebuild_parameter_with_state", "_rebuild_meta_tensor_no_storage", "_rebuild_sparse_tensor", "_rebuild_nested",
               "_rebuild_masked", "_rebuild_qtensor", "_rebuild_wrapper_subclass")  # fmt: skip
_safe = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets `load` make instances of more classes and call more functions, by default too.

    Args:
        safe_globals (list): classes and functions, or pairs (class or function, "module.name" in the file).

    Raises:
        TypeError: something without a name among them.
    """
    for known in safe_globals:
        named = isinstance(known, tuple) and len(known) == 2 and isinstance(known[1], str)
        if not named and not (hasattr(known, "__module__") and hasattr(known, "__qualname__")):
            raise TypeError(
                f"add_safe_globals: expected classes, functions or pairs of one and its name, got {type(known).__name__}"
            )
    _safe.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """The added classes and functions."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Removes all added classes and functions."""
    _safe.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """`add_safe_globals` for a block."""
    before = list(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe[:] = before


def _latin1(text, encoding="latin1"):
    """The function that pickles of protocol 2 call to create bytes; in them, `_codecs.encode`."""
    if encoding not in ("latin1", "latin-1"):
        raise CheckpointError(f"bytes are encoded as latin1, not {encoding!r}")
    return text.encode("latin1")


def _bytes_of(*data):
    """`bytearray` and `bytes` of existing data: a count could allocate more memory than the file's size."""
    if any(not isinstance(d, (bytes, str, list, tuple)) for d in data):
        raise CheckpointError("bytes are made of bytes, text or a list")
    return bytearray(*data)


def _reconstructed(cls, base, state):
    """Creates instances as pickles of protocol 0 and 1 do."""
    if base is not object or not may_be_made(cls):
        raise CheckpointError(f"the pickle makes an instance of {getattr(cls, '__qualname__', cls)}, which it may not")
    return object.__new__(cls)


def known_globals() -> dict[Any, Any]:
    """(module, name) in a pickle -> the object here; None for a storage without a dtype."""
    from .nn.parameter import Parameter

    known = {("torch._utils", name): getattr(_utils, name) for name in _REBUILDERS}
    known |= {("torch", name): dtype for name, dtype in _DTYPES.items()}
    known |= {("torch", name): dtype for name, dtype in _KINDS.items()}
    known |= {("torch", value._name): value for value in vars(_formats).values() if isinstance(value, _formats.qscheme)}
    known |= {("torch.storage", "UntypedStorage"): None, ("torch", "UntypedStorage"): None}
    known |= {("torch", "Size"): Size, ("torch", "device"): _device, ("torch", "Tensor"): Tensor}
    # Written under the last of its names; Python's own pickler names the module that it is in here.
    known |= {(m, "_rebuild_from_type_v2"): _utils._rebuild_from_type_v2 for m in ("torch._utils", "torch._tensor")}
    known |= {("torch.serialization", "_get_layout"): get_layout}
    known |= {("torch.nn.parameter", "Parameter"): Parameter, ("_codecs", "encode"): _latin1}
    known |= {("collections", c.__name__): c for c in (OrderedDict, Counter, defaultdict)}
    known |= {(m, "_reconstructor"): _reconstructed for m in ("copyreg", "copy_reg")}
    known |= {(m, "object"): object for m in ("builtins", "__builtin__")}
    for cls in (set, frozenset, complex, bytearray, slice, list, dict, tuple, int, float, bool, str, bytes):
        known["builtins", cls.__name__] = known["__builtin__", cls.__name__] = cls
    return known


def calls() -> Any:
    """What a pickle may call -> what is called instead, or None for itself."""
    made = {getattr(_utils, name): None for name in (*_REBUILDERS, "_rebuild_from_type_v2")}
    made |= {cls: None for cls in (Size, _device, set, frozenset, complex, slice, OrderedDict, Counter, defaultdict)}
    made |= {
        get_layout: None,
        bytearray: _bytes_of,
        bytes: lambda *data: bytes(_bytes_of(*data)),
        _latin1: None,
        _reconstructed: None,
    }
    return made | {value: None for value in allowed().values() if callable(value)}


def torch_name(module: str) -> str:
    """PyTorch's name of a module of this package."""
    return "torch" + module[len(OWN) :] if module == OWN or module.startswith(OWN + ".") else module


def allowed() -> dict[Any, Any]:
    """The objects allowed by `add_safe_globals`, by (module, name) as written in files."""
    made = {}
    for entry in _safe:
        value, name = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        made[name.replace("__builtin__.", "builtins.")] = value
        made[torch_name(name)] = value
    return made


def may_be_made(cls: Any) -> bool:
    return isinstance(cls, type) and any(cls is (e[0] if isinstance(e, tuple) else e) for e in _safe)
