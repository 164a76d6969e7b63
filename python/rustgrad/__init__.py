"""rustgrad: PyTorch's eager semantics in a small Rust core, on the CPU and on any vendor's GPU.

`import rustgrad as torch` runs programs written for PyTorch's documented API. The functions of this
namespace come from the op table of the extension module; the submodules (`nn`, `optim`, ...) load on
first use, and NumPy is never imported by rustgrad itself.
"""

import importlib as _importlib
import math as _math

from . import _C, _alias, _functions, _nn_natives, _size, _tensor, storage  # noqa: F401
from ._absent import getattr_of as _getattr_of
from ._checks import SymBool as SymBool
from ._checks import SymFloat as SymFloat
from ._checks import SymInt as SymInt
from ._checks import _assert as _assert
from ._checks import _assert_async as _assert_async
from ._checks import _check as _check
from ._checks import _check_index as _check_index
from ._checks import _check_is_size as _check_is_size
from ._checks import _check_not_implemented as _check_not_implemented
from ._checks import _check_tensor_all as _check_tensor_all
from ._checks import _check_tensor_all_with as _check_tensor_all_with
from ._checks import _check_type as _check_type
from ._checks import _check_value as _check_value
from ._checks import _check_with as _check_with
from ._dtype_info import finfo as finfo
from ._dtype_info import iinfo as iinfo
from ._formats import *  # noqa: F403
from ._functions import *  # noqa: F403
from ._histogram import *  # noqa: F403
from ._lowrank import *  # noqa: F403
from ._removed import *  # noqa: F403
from ._segments import *  # noqa: F403
from ._segments import segment_reduce as _segment_reduce  # noqa: F401
from ._settings import *  # noqa: F403
from ._spectral import *  # noqa: F403
from ._typed import *  # noqa: F403
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .storage import TypedStorage as TypedStorage
from .storage import UntypedStorage as UntypedStorage
from .version import __version__ as __version__

_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
_SUBMODULES = (
    "__config__",
    "__future__",
    "_dynamo",
    "_functorch",
    "_vmap_internals",
    "_inductor",
    "accelerator",
    "amp",
    "ao",
    "autograd",
    "backends",
    "classes",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "gpu",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
    "nn",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "package",
    "profiler",
    "quantization",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "viz",
    "xpu",
)
_LAZY = {
    "vmap": "func",
    "GradScaler": "amp",
    "_grouped_mm": "nn._grouped",
    "_scaled_mm": "nn._scaled",
    "conv_tbc": "nn.functional",
    "autocast": "amp",
    **dict.fromkeys(
        (
            "get_autocast_cpu_dtype",
            "get_autocast_dtype",
            "get_autocast_gpu_dtype",
            "get_autocast_ipu_dtype",
            "get_autocast_xla_dtype",
            "is_autocast_cpu_enabled",
            "is_autocast_enabled",
            "is_autocast_ipu_enabled",
            "is_autocast_xla_enabled",
            "set_autocast_cpu_dtype",
            "set_autocast_cpu_enabled",
            "set_autocast_dtype",
            "set_autocast_enabled",
            "set_autocast_gpu_dtype",
            "set_autocast_ipu_dtype",
            "set_autocast_ipu_enabled",
            "set_autocast_xla_dtype",
            "set_autocast_xla_enabled",
        ),
        "amp.autocast_mode",
    ),
    "save": "serialization",
    "load": "serialization",
    "Future": "futures",
    "PyTorchFileReader": "_file_reader",
    "PyTorchFileWriter": "_file_reader",
    "Tag": "_op_defs",
    "_convert_indices_from_coo_to_csr": "_row_pointers",
    "_convert_indices_from_csr_to_coo": "_row_pointers",
    "ScriptFunction": "jit",
    "ScriptModule": "jit",
    "fork_rng": "random",
    "get_device_module": "accelerator",
    "Event": "_streams",
    "Stream": "_streams",
    "compile": "compiler",
    "lobpcg": "_lobpcg",
    **dict.fromkeys(
        (
            "sparse_bsc_tensor",
            "sparse_bsr_tensor",
            "sparse_compressed_tensor",
            "sparse_coo_tensor",
            "sparse_csc_tensor",
            "sparse_csr_tensor",
            "_sparse_coo_tensor_unsafe",
            "dsmm",
            "hspmm",
            "resize_as_sparse_",
            "saddmm",
            "smm",
            "spmm",
            "sspaddmm",
        ),
        "sparse",
    ),
    **dict.fromkeys(
        (
            "_choose_qparams_per_tensor",
            "_empty_affine_quantized",
            "_empty_per_channel_affine_quantized",
            "_make_per_channel_quantized_tensor",
            "_make_per_tensor_quantized_tensor",
            "dequantize",
            "empty_quantized",
            "quantize_per_channel",
            "quantize_per_tensor",
            "quantize_per_tensor_dynamic",
        ),
        "_quantized._construct",
    ),
    **dict.fromkeys(
        (
            "embedding_renorm_",
            "frobenius_norm",
            "hash_tensor",
            "nuclear_norm",
            "slice_inverse",
            "to_dlpack",
            "view_as_complex_copy",
        ),
        "_seldom",
    ),
    "ScriptObject": "_quantized._script_object",
    "quantized_gru": "_quantized._cells",
    "quantized_lstm": "_quantized._cells",
    **dict.fromkeys(
        (
            "int_repr",
            "q_per_channel_axis",
            "q_per_channel_scales",
            "q_per_channel_zero_points",
            "q_scale",
            "q_zero_point",
        ),
        "_quantized._functions",
    ),
    **dict.fromkeys(
        (
            "_fake_quantize_learnable_per_channel_affine",
            "_fake_quantize_learnable_per_tensor_affine",
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
            "_fused_moving_avg_obs_fq_helper",
            "fake_quantize_per_channel_affine",
            "fake_quantize_per_tensor_affine",
            "fused_moving_avg_obs_fake_quant",
        ),
        "_quantized._fake",
    ),
    "set_anomaly_enabled": "autograd",
    "summary": "_summary",
}

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None
_C._TensorMeta, _C._nn = type(_C.Tensor), _nn_natives


def _fill_namespace(names):
    """Adds natives of the extension module, ops without a dot, and dtype aliases; returns the public names."""
    for name, value in vars(_C).items():
        if name[0] != "_" and name != "ops":
            names[name] = value
    ours = {*_functions.__all__, *(name for name in _C._steps if name[0] != "_")}
    # `_foreach_*` is a module: those ops are the parts of it that optimizers need.
    ops = {name: op for name, op in _C.ops.items() if not name.startswith("_foreach_")}
    names.update({name: op for name, op in ops.items() if "." not in name and name not in ours})
    names.update(storage.make_types())
    names.update({alias: getattr(_C, name) for alias, name in _ALIASES.items()})
    return [name for name in names if name[0] != "_"]


__all__ = sorted(
    {*_fill_namespace(globals()), *_SUBMODULES, *(n for n in _LAZY if n[0] != "_"), "Storage", "__version__"}
    - {"__config__", "__future__", "_dynamo", "_functorch", "_inductor", "_vmap_internals"}
)
# A function written in Python in PyTorch, of which libraries ask whether it has this keyword.
_C.ops["meshgrid"].__kwdefaults__ = {"indexing": None}
_alias.install()


def _private(name):
    """A name of PyTorch's extension module that ours does not have."""
    if name[:2] != "__":
        if name in _alias.IN_EXTENSION:
            return _importlib.import_module(_alias.IN_EXTENSION[name])
        names = _importlib.import_module(f"{__package__}._native_names").NAMES
        if name in names:
            return names[name]
    raise AttributeError(f"module '{_C.__name__}' has no attribute '{name}'")


# `import torch._C._functorch`: modules in it are found by `_alias`.
_C.__getattr__, _C.__path__ = _private, []


def __getattr__(name):
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__package__}.{name}")
    if name in _LAZY:
        value = getattr(_importlib.import_module(f"{__package__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    if name.startswith(("_foreach_", "_amp_")):
        found = vars(_importlib.import_module(f"{__package__}._foreach")).get(name)
        if found is not None:
            return found
    if name == "Storage":
        return storage.default_type()
    if name == "torch":  # as in PyTorch, the package has itself as an attribute
        return _importlib.import_module(__package__)
    return _elsewhere(name)


_elsewhere = _getattr_of(__package__)


def __dir__() -> list[str]:
    return __all__
