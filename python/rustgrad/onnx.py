"""`rustgrad.onnx`: whether code is being exported, which it never is; there is no exporter."""

from __future__ import annotations

from typing import Any

from ._absent import getattr_of

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export"]


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


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
