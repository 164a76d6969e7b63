"""`rustgrad.onnx`: whether code is being exported, which it never is; there is no exporter."""

from __future__ import annotations

import enum
import sys
import types
from typing import Any

from .._absent import absent as _absent

__all__ = [
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]
_OPSETS = range(7, 21)


class TensorProtoDataType(enum.IntEnum):
    """The element types of ONNX."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


class TrainingMode(enum.IntEnum):
    """The mode in which a module would be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """As what operators would be exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class OnnxExporterError(RuntimeError):
    """An error of the exporter."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> Any:
    """NotImplementedError: there is no exporter."""
    raise NotImplementedError(
        "onnx.export: there is no ONNX exporter here. Hint: save the state_dict with rustgrad.save and export it with PyTorch."
    )


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """No effect: how an op would be exported is never asked."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """No effect."""


def __getattr__(name: str) -> Any:
    # Libraries import the exporter's op sets to register theirs beside them: modules without names.
    if name.startswith("symbolic_opset") and name[14:].isdigit() and int(name[14:]) in _OPSETS:
        module = types.ModuleType(f"{__name__}.{name}", "An op set of the exporter, which is not here.")
        return sys.modules.setdefault(module.__name__, module)
    raise _absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
