"""The exceptions of the exporter."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """A model cannot be exported, or the exporter cannot run."""


class OnnxExporterWarning(UserWarning):
    """Something about an exported model that its user should know."""


class UnsupportedOperatorError(OnnxExporterError):
    """An op has no translation."""

    def __init__(self, name: str, version: int, supported_version: int | None = None, where: str = "") -> None:
        hint = (
            f"Hint: it has one from opset {supported_version} on."
            if supported_version is not None
            else "Hint: write it with other ops, or give its translation in custom_translation_table."
        )
        super().__init__(f"onnx.export: '{name}'{where} has no translation to ONNX opset {version}. {hint}")
        self.name, self.version, self.supported_version = name, version, supported_version


class SymbolicValueError(OnnxExporterError):
    """An error about a value in the graph."""

    def __init__(self, msg: str, value: object) -> None:
        super().__init__(f"{msg} [caused by the value '{value}']")
