"""`Schema`: the arguments and results of one overload of an op, and the calls that fit them."""

from __future__ import annotations

import functools
import re
from typing import Any

from ._aten_schemas import SCHEMAS

__all__ = ["Argument", "Schema", "find", "overloads"]

_LINE = re.compile(r"(\w+)(?:\.(\w+))?\((.*)\) -> (.*)")
_ARGUMENT = re.compile(r"(\w+)(\([a-z]\w*!\))?((?:\?|\[\d*\])*)(\([a-z]\w*!\))? (\w+)(?:=(.*))?")
_NOTHING = object()


class Argument:
    """An argument of an op.

    Attributes:
        name (str): its name.
        kind (str): its type: "Tensor", "int", "Scalar" ...
        optional (bool): whether None stands for no value.
        listed (bool): whether it is a list; `size` is then how many values a single one stands for, 0 for none.
        element_optional (bool): whether elements of the list may be None.
        writes (bool): whether the op writes to it.
        keyword_only (bool): whether it is given by name.
    """

    def __init__(self, text: str, keyword_only: bool) -> None:
        found = _ARGUMENT.fullmatch(text)
        if found is None:
            raise ValueError(f"schema: {text!r} is not an argument")
        self.kind, written, marks, list_written, self.name, default = found.groups()
        self.writes = written is not None or list_written is not None
        self.keyword_only = keyword_only
        self.listed = "[" in marks
        self.optional = marks.endswith("?")
        self.element_optional = marks.startswith("?[")
        size = re.search(r"\[(\d+)\]", marks)
        self.size = int(size.group(1)) if size else 0
        self.text = f"{self.kind}{marks}"
        self._default = _NOTHING if default is None else _value(default, self)

    @property
    def has_default(self) -> bool:
        """Whether it may be left out."""
        return self._default is not _NOTHING

    @property
    def default_value(self) -> Any:
        """What it is when it is left out; None without a default."""
        return None if self._default is _NOTHING else self._default

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self.has_default

    @property
    def kwarg_only(self) -> bool:
        """Whether it is given by name."""
        return self.keyword_only

    def __repr__(self) -> str:
        shown = f"={self.default_value}" if self.has_default else ""
        return f"{self.text} {self.name}{shown}"


def _value(text: str, argument: Argument) -> Any:
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if text.startswith("["):
        return [int(v) for v in text[1:-1].split(",") if v]
    if text.startswith('"'):
        return text[1:-1]
    try:
        number = float(text) if re.search(r"[.e]|inf", text) else int(text)
    except ValueError:
        return text
    if argument.listed:
        return [number] * max(argument.size, 1)
    return float(number) if argument.kind == "float" else number


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in [*parts, text[start:].strip()] if p]


class Schema:
    """The arguments and results of one overload.

    Attributes:
        name (str): "aten::add".
        overload_name (str): "Tensor"; "" for the one without a name.
        arguments (list): each an `Argument`.
        returns (list): the types of the results, as text.
    """

    def __init__(self, namespace: str, line: str) -> None:
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"schema: {line!r} is not a schema")
        base, overload, arguments, returns = found.groups()
        self.name, self.overload_name, self._line = f"{namespace}::{base}", overload or "", line
        self.arguments: list[Argument] = []
        named = False
        for part in _split(arguments):
            if part == "*":
                named = True
            else:
                self.arguments.append(Argument(part, named))
        inner = returns[1:-1] if returns.startswith("(") else returns
        self.returns: list[str] = _split(inner)

    @property
    def is_mutable(self) -> bool:
        """Whether the op writes to an argument."""
        return any(a.writes for a in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether the result may share memory with an argument that is not written."""
        return self.name.removeprefix("aten::") in VIEWS

    def __str__(self) -> str:
        return f"{self.name.partition('::')[0]}::{self._line}"

    __repr__ = __str__


# Ops whose result is a view of their first argument, or may be.
VIEWS = frozenset(
    """alias as_strided chunk contiguous detach diagonal expand expand_as flatten imag mH mT matrix_H moveaxis movedim narrow numpy_T
    permute ravel real reshape reshape_as select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose
    type_as unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real adjoint hsplit vsplit dsplit broadcast_to
    broadcast_tensors meshgrid atleast_1d atleast_2d atleast_3d unsafe_chunk conj resolve_conj resolve_neg squeeze_ _reshape_alias
    _unsafe_view lift_fresh""".split()
)


@functools.cache
def _lines() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in SCHEMAS.splitlines():
        found.setdefault(re.split(r"[.(]", line, maxsplit=1)[0], []).append(line)
    return found


@functools.cache
def overloads(name: str) -> dict[str, Schema]:
    """The overloads of an op of `aten` by name ("default" for the one without); empty for an unknown op."""
    made = (Schema("aten", line) for line in _lines().get(name, ()))
    return {s.overload_name or "default": s for s in made}


def find(namespace: str, name: str, overload: str) -> Schema | None:
    """The schema of an overload; None if it is not known."""
    if namespace == "aten":
        return overloads(name).get(overload)
    from ._ops import registered

    text = getattr(registered.get(namespace, {}).get(name), "_schema", None)
    if not isinstance(text, str) or "(" not in text:
        return None
    return Schema(
        namespace, name + re.sub(r"Tensor\([a-z]\)", "Tensor", text[text.index("(") :]).replace("SymInt", "int")
    )
