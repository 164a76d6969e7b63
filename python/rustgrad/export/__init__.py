"""`rustgrad.export`: names that programs import; there is no exporter."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["Dim", "ExportedProgram", "draft_export", "export", "load", "register_dataclass", "save"]


class ExportedProgram:
    """The class of exported programs, of which there are no objects."""


class _DimHint:
    """What is said of a dimension without a name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"


class Dim:
    """A dimension whose size may vary: a name with bounds. `AUTO`, `DYNAMIC` and `STATIC` stand for one without a name."""

    AUTO, DYNAMIC, STATIC = _DimHint("AUTO"), _DimHint("DYNAMIC"), _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.min, self.max = name, min, max


def _refuse(name) -> NoReturn:
    raise NotImplementedError(
        f"export.{name}: there are no exported programs here. Hint: save the state_dict with rustgrad.save and export it with "
        "PyTorch, or record the calls with rustgrad.fx.symbolic_trace."
    )


def export(mod: Any, args: Any = (), kwargs: Any = None, **options: Any) -> ExportedProgram:
    """NotImplementedError: there is no exporter."""
    _refuse("export")


def draft_export(mod: Any, args: Any = (), kwargs: Any = None, **options: Any) -> ExportedProgram:
    """NotImplementedError: there is no exporter."""
    _refuse("draft_export")


def save(ep: ExportedProgram, f: Any, **options: Any) -> None:
    """NotImplementedError: there is nothing to save."""
    _refuse("save")


def load(f: Any, **options: Any) -> ExportedProgram:
    """NotImplementedError: an exported program is a program, for which there is no interpreter."""
    _refuse("load")


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Registers a dataclass as a tree of its fields."""
    from ..utils import _pytree

    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
