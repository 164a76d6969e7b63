"""Reads the signature strings of the op table: parameter names, types and defaults.

sum.dim(Tensor self, Dim[1]? dim, bool keepdim=False, *, DType? dtype=None) -> Tensor
"""

import ast
import functools
from dataclasses import dataclass

from support.samples import split


@dataclass(frozen=True)
class Param:
    name: str
    kind: str
    optional: bool
    default: str | None
    keyword_only: bool
    # The values of an enumerated string.
    choices: tuple[str, ...] = ()

    def default_value(self):
        """The default as a Python value; a bare word (such as a reduction's name) as a string."""
        try:
            return ast.literal_eval(self.default)
        except (ValueError, SyntaxError):
            return self.default


def plain(kind: str) -> tuple[str, tuple[str, ...]]:
    """The type as Python sees it, and the strings it takes: a dimension is an int, a written tensor a tensor."""
    if kind.startswith("str{"):
        return "str", tuple(kind[4:-1].split("|"))
    if kind.startswith("Dim"):
        kind = "int" + kind[kind.index("[") :] if "[" in kind else "int"
    return "Size" if kind == "int[*]" else kind.replace("!", "").replace("~", ""), ()


@functools.cache
def params(signature: str) -> list[Param]:
    found, keyword_only = [], False
    for text in split(signature[signature.index("(") + 1 : signature.rindex(") ->")]):
        if text == "*":
            keyword_only = True
            continue
        declared, _, default = text.partition("=")
        kind, _, name = declared.strip().rpartition(" ")
        optional = kind.endswith("?")
        kind, choices = plain(kind.removesuffix("?"))
        found.append(Param(name, kind, optional, default or None, keyword_only, choices))
    return found


def bind(signature: str, args: list, kwargs: dict) -> dict:
    """Every parameter's value in a call, defaults filled in."""
    values = {p.name: p.default_value() for p in params(signature) if p.default is not None}
    values.update({p.name: a for p, a in zip(params(signature), args)})
    return values | kwargs
