"""Private names of `torch._C` that libraries look up: those of the extension module are looked for here when it lacks one.

None of them reaches into the extension module: there is no dispatcher with keys, no TorchScript and no telemetry.
"""

from __future__ import annotations

import contextlib
import enum
import sys
import traceback
import types
from typing import Any

import rustgrad

from . import _C
from ._op_defs import Tag

__all__: list[str] = []

# Classes of TorchScript's graphs: libraries annotate functions with them.
_TORCHSCRIPT = ("Argument", "Block", "FunctionSchema", "Graph", "Node", "Type", "Value")
# Libraries of devices and of kernels, which are not used.
_ABSENT_LIBRARIES = (
    "_has_cuda _has_cudnn _has_cusparselt _has_eigen_sparse _has_gds _has_kleidiai _has_magma _has_mkldnn _has_mkldnn_acl "
    "_has_mps _has_xpu"
)
# Its types, which are names of the top namespace too.
_SCRIPT_TYPES = (
    "AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType IntType InterfaceType ListType "
    "NoneType NumberType OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType TensorType TupleType UnionType"
)
# Settings of TorchScript's executors: accepted, without effect.
_SETTINGS = (
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_bailout_depth",
    "_jit_set_fusion_strategy",
    "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_set_texpr_fuser_enabled",
    "_log_api_usage_metadata",
    "_log_api_usage_once",
)
_KEYS = "CPU CUDA XPU MPS Meta Autograd AutogradCPU AutogradCUDA AutocastCPU AutocastCUDA AutocastXPU ADInplaceOrView Functionalize Python CompositeExplicitAutograd CompositeImplicitAutograd"
DispatchKey = enum.Enum("DispatchKey", {name: name for name in _KEYS.split()})


class DispatchKeySet:
    """A set of dispatch keys, which only `_ExcludeDispatchKeyGuard` reads."""

    def __init__(self, *keys: Any) -> None:
        self.keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def has(self, key: Any) -> bool:
        """Whether a key is in it."""
        return key in self.keys


class _ExcludeDispatchKeyGuard:
    """A block in which keys are left out: those of autocast switch it off, others have no effect."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._keys = keys
        self._blocks: list[Any] = []

    def __enter__(self) -> None:
        from .amp import autocast

        devices = {"AutocastCPU": "cpu", "AutocastCUDA": "gpu"}
        self._blocks = [autocast(devices[k.name], enabled=False) for k in self._keys.keys if k.name in devices]
        for block in self._blocks:
            block.__enter__()

    def __exit__(self, *error: Any) -> None:
        for block in reversed(self._blocks):
            block.__exit__(*error)


def _of_torchscript(name: str) -> type:
    """A class of TorchScript's graphs, for annotations: there are no such graphs."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"torch._C.{name}: No constructor defined! There is no TorchScript here.")

    return type(name, (), {"__new__": __new__, "__module__": "torch._C", "__doc__": "Only a name, for annotations."})


def _get_tracing_state() -> Any:
    """The state of `jit._get_trace_graph` while it runs; None outside of it."""
    traces = sys.modules.get("rustgrad.jit._trace_graph")
    return None if traces is None else traces.current()


def _nothing(*args: Any, **kwargs: Any) -> None:
    """No effect."""


def _false(*args: Any, **kwargs: Any) -> bool:
    """False."""
    return False


def _get_accelerator(check: Any = None) -> Any:
    """The device beside the CPU if there is one, else the CPU."""
    from .accelerator import current_accelerator

    return current_accelerator() or _C.device("cpu")


def _are_functorch_transforms_active() -> bool:
    """Whether calls run for a batch, or with tangents: `func.grad` is ordinary recording."""
    return _C._vmap_depth() > 0 or bool(_C._forward_levels())


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Whether two tensors share memory."""
    return bool(tensor.device == other.device and _C._storage_key(tensor) == _C._storage_key(other))


def _get_default_device() -> str:
    return str(rustgrad.get_default_device())


class _Switch:
    """A setting that is kept and has no effect: whether a loop of the older `vmap` is shown."""

    on = False

    @classmethod
    def set(cls, on: bool) -> None:
        """Keeps it."""
        cls.on = on

    @classmethod
    def get(cls) -> bool:
        """What was kept."""
        return cls.on


class _DisableTorchDispatch:
    """A block in which ops go to no mode and no class below autograd."""

    def __enter__(self) -> None:
        from ._dispatch import _classes

        self._block = _classes.disabled()
        self._block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)


def _get_dispatch_stack_at(level: int) -> Any:
    """A mode that this thread is in, counted from the outermost."""
    from .utils._python_dispatch import _get_current_dispatch_mode_stack

    return _get_current_dispatch_mode_stack()[level]


def _tracebacks() -> types.ModuleType:
    """`torch._C._profiler`: tracebacks as modes that log ops take them."""

    def gather_traceback(python: bool, script: bool, cpp: bool) -> Any:
        """The frames of Python, innermost first."""
        return traceback.extract_stack()[-2::-1] if python else []

    def symbolize_tracebacks(tracebacks: list[Any]) -> list[Any]:
        """Each as a list of frames, with the name, file and line."""
        return [[{"name": f.name, "filename": f.filename, "line": f.lineno} for f in frames] for frames in tracebacks]

    made = types.ModuleType("rustgrad._C._profiler")
    vars(made).update(gather_traceback=gather_traceback, symbolize_tracebacks=symbolize_tracebacks)
    return made


def _processor() -> types.ModuleType:
    """`torch._C._cpu`: kernels for particular processors that libraries of compiled code ask for, of which there are none."""
    made = types.ModuleType("rustgrad._C._cpu")
    for name in ("amx_tile", "amx_fp16", "avx2", "avx512", "avx512_bf16", "avx512_vnni", "vnni"):
        setattr(made, f"_is_{name}_supported", _false)
    return made


def _of_modes(name: str) -> Any:
    def function(*args: Any) -> Any:
        from .utils import _python_dispatch

        return getattr(_python_dispatch, name)(*args)

    function.__doc__ = f"`utils._python_dispatch.{name}`."
    return function


def _is_subclass_like(tensor: Any) -> bool:
    """Whether ops on a tensor go to its class, or to a mode."""
    from .autograd import _engine

    return _engine.dispatched is not None and bool(_engine.dispatched([tensor]))


def _find_schema(name: str, overload: str) -> Any:
    """The overload of an op `namespace::name`. RuntimeError: there is none."""
    namespace, _, op = name.partition("::")
    with contextlib.suppress(AttributeError, NotImplementedError):
        found = getattr(getattr(getattr(rustgrad.ops, namespace), op), overload or "default")
        if found._schema is not None:
            return found
    raise RuntimeError(f"Could not find schema for {name}{'.' if overload else ''}{overload}.")


def _names() -> dict[str, Any]:
    names: dict[str, Any] = dict.fromkeys(_SETTINGS, _nothing)
    names.update((name, _of_torchscript(name)) for name in _TORCHSCRIPT)
    names.update(
        DispatchKey=DispatchKey,
        DispatchKeySet=DispatchKeySet,
        _ExcludeDispatchKeyGuard=_ExcludeDispatchKeyGuard,
        _GLIBCXX_USE_CXX11_ABI=True,
        Tag=Tag,
        StorageBase=rustgrad.UntypedStorage,
        _TensorBase=_C.Tensor,
        _DisableTorchDispatch=_DisableTorchDispatch,
        _dispatch_find_schema_or_throw=_find_schema,
        _dispatch_isTensorSubclassLike=_is_subclass_like,
        _get_dispatch_stack_at=_get_dispatch_stack_at,
        _len_torch_dispatch_stack=_of_modes("_len_torch_dispatch_stack"),
        _pop_torch_dispatch_stack=_of_modes("_pop_mode"),
        _push_on_torch_dispatch_stack=_of_modes("_push_mode"),
        _cpu=_processor(),
        _profiler=_tracebacks(),
        _are_functorch_transforms_active=_are_functorch_transforms_active,
        _cuda_isInBadFork=_false,
        _debug_only_are_vmap_fallback_warnings_enabled=_Switch.get,
        _debug_only_display_vmap_fallback_warnings=_Switch.set,
        _get_accelerator=_get_accelerator,
        _get_default_device=_get_default_device,
        _get_privateuse1_backend_name=lambda: "privateuseone",
        _get_tracing_state=_get_tracing_state,
        _is_alias_of=_is_alias_of,
        _is_tracing=_false,
        _jit_can_fuse_on_cpu=_false,
        _jit_can_fuse_on_gpu=_false,
        **dict.fromkeys(_ABSENT_LIBRARIES.split(), False),
        has_lapack=True,
        has_mkl=False,
        has_mkldnn=False,
        has_openmp=False,
        has_spectral=True,
    )
    names.update((name, _of_torchscript(name)) for name in _SCRIPT_TYPES.split())
    return names


NAMES = _names()
NAMES["ScriptObject"] = rustgrad.ScriptObject
NAMES |= {name: getattr(rustgrad, name) for name in ("PyTorchFileReader", "PyTorchFileWriter")}


def install() -> None:
    """Adds the types of TorchScript to the top namespace, where PyTorch has them too."""
    for name in _SCRIPT_TYPES.split():
        setattr(rustgrad, name, NAMES[name])


def rename_classes() -> None:
    """Gives the classes of the top namespace PyTorch's module: programs print them, and libraries choose a backend by it."""
    for name in ("Size", "Tensor", "UntypedStorage", "device", "dtype", "finfo", "iinfo", "layout", "memory_format"):
        getattr(rustgrad, name).__module__ = "torch.storage" if name == "UntypedStorage" else "torch"
    for cls in rustgrad.storage.make_types().values():
        cls.__module__ = "torch"
    rustgrad.TypedStorage.__module__ = "torch.storage"
    rustgrad.OutOfMemoryError.__module__ = "torch"
    rustgrad.Generator.__module__ = "torch._C"
