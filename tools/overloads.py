"""A declaration of the op table as the overloads of a type stub.

`max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)` becomes a `def` with the names that
Python shows; sizes that may be a list or the rest of the arguments become two.
"""

import keyword
import re
from typing import NamedTuple

TYPES = {
    "Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "Tensors": "Sequence[Tensor]",
    "True": "Literal[True]", "False": "Literal[False]", "Tensor?[]": "Sequence[Tensor | None]",
    "Operand": "Tensor | Number", "Scalar": "Number", "int": "_int", "float": "_float", "bool": "_bool",
    "int[]": "Sequence[_int]", "int[1]": "_int | Sequence[_int]", "float[]": "Sequence[Number]", "float[1]": "Number | Sequence[Number]",
    "Size": "_int | Sequence[_int]", "DType": "_dtype", "Device": "DeviceLike", "str": "_str",
    "Generator": "Generator", "MemoryFormat": "_memory_format",
}  # fmt: skip
# What ops that create tensors accept in addition to their arguments: see src/python/memory.rs.
ON_REQUEST = ["layout: _layout | None = None", "pin_memory: _bool = False"]


class Parameter(NamedTuple):
    name: str
    kind: str
    optional: bool
    default: str | None
    keyword_only: bool

    def annotation(self, kind: str | None = None) -> str:
        none = " | None" if self.optional or self.default == "None" else ""
        return python_type(kind or self.kind) + none


def python_type(kind: str) -> str:
    """The annotation of a declared type: `str{none|mean}` takes the strings that it lists."""
    if kind.startswith("str{"):
        return "Literal[" + ", ".join(f'"{value}"' for value in kind[4:-1].split("|")) + "]"
    return TYPES[kind]


def plain(kind: str) -> str:
    """A type without what only dispatch needs to know: a dimension is an int, a tensor that is written to a tensor."""
    kind = kind.replace("!", "").replace("~", "")
    if kind.startswith("Dim"):
        kind = "int" + re.sub(r"^Dim\+?(\(\w+\))?", "", kind)
    return "Size" if kind == "int[*]" else kind


def split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote or c in "'\"":
            quote = c if not quote else "" if c == quote else quote
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth and not quote:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in [*parts, text[start:].strip()] if p]


def parameters(signature: str, method: bool) -> list[Parameter]:
    """The parameters of a declaration, under the names that Python shows."""
    found, keyword_only = [], False
    for text in split(signature[signature.index("(") + 1 : signature.rindex(") ->")]):
        if text == "*":
            keyword_only = True
            continue
        declared, equals, default = text.partition("=")
        kind, _, name = declared.strip().rpartition(" ")
        name = "input" if name == "self" and not method else name
        name = f"{name}_" if keyword.iskeyword(name) else name
        found.append(
            Parameter(
                name, plain(kind.removesuffix("?")), kind.endswith("?"), default if equals else None, keyword_only
            )
        )
    return found


def result(row: dict) -> str:
    returns = row["signature"][row["signature"].rindex(") ->") + 4 :].strip()
    if returns == "Tensor":
        return "Tensor"
    if returns == "Tensor[]":
        return "tuple[Tensor, ...]"
    return "return_types." + row["public"].lstrip("_").replace(".", "_")


class Overload(NamedTuple):
    parameters: list[str]
    returns: str
    doc: str

    def bare(self) -> tuple:
        """What distinguishes overloads: types without default values and names of positional parameters."""
        return tuple(p.split(" = ")[0] + (" =" if " = " in p else "") for p in self.parameters), self.returns


def variants(row: dict, method: bool, out: bool, one_tensor: bool) -> list[Overload]:
    """The Python overloads of a declaration: one, or two if a list may also be given as the rest of the arguments."""
    given = parameters(row["signature"], method)
    positional = [p for p in given if not p.keyword_only]
    last = len(positional) - 1
    rest = next((i for i, p in enumerate(positional) if p.kind == "Tensors"), None)
    if positional and positional[-1].kind == "Size" and (method or last == 0):
        rest = last
    doc = (row["doc"] or "").strip().split("\n")[0].replace('"', "'").replace("\\", "\\\\")
    forms = [None, rest] if rest is not None else [None]
    return [Overload(written(given, method, out, row, form, one_tensor), result(row), doc) for form in forms]


def written(
    given: list[Parameter], method: bool, out: bool, row: dict, rest: int | None, one_tensor: bool
) -> list[str]:
    """The parameters of one overload as text; those from `rest` on are collected by `*`."""
    texts: list[str] = []
    star = False
    # A literal True selects the overload, so it must be given, and by name.
    chosen = next((i for i, p in enumerate(given) if p.kind == "True"), len(given))
    reserved = max((i for i, p in enumerate(given) if keyword.iskeyword(p.name.rstrip("_"))), default=-1)
    for i, p in enumerate(given):
        if i == 0 and method:
            texts.append("self")
            continue
        if not star and (p.keyword_only or i == chosen):
            texts.append("*")
            star = True
        if i == rest:
            one = "Tensor" if p.kind == "Tensors" else "_int"
            # A single tensor may have a separate overload, with another result.
            texts += ["tensor0: Tensor", "tensor1: Tensor", "/"] if one == "Tensor" and one_tensor else []
            texts.append(f"*{p.name}: {one}")
            star = True
            continue
        kind = (
            "int[]"
            if p.kind == "Size" and rest is None and i + 1 == len([q for q in given if not q.keyword_only])
            else None
        )
        default = None if p.kind == "True" else p.default
        texts.append(f"{p.name}: {p.annotation(kind)}" + (f" = {default}" if default is not None else ""))
        if i == reserved:
            texts.append("/")
    texts += [] if star or not (out or makes_tensors(given)) else ["*"]
    texts += ON_REQUEST if makes_tensors(given) else []
    if out:
        several = row["signature"].rstrip().endswith(")") or result(row).startswith("tuple")
        texts.append(f"out: {'Sequence[Tensor]' if several else 'Tensor'} | None = None")
    return texts


def makes_tensors(given: list[Parameter]) -> bool:
    return any(p.name == "requires_grad" for p in given)


def undecided(overloads: list[Overload]) -> list[Overload]:
    """The overload for a call with non-literal flags, if literals select between results."""
    flagged = [o for o in overloads if any("Literal[" in p for p in o.parameters)]
    results = list(dict.fromkeys(o.returns for o in flagged))
    if len(results) < 2:
        return []
    first = [p.replace("Literal[False]", "_bool") for p in flagged[0].parameters]
    return [Overload(first, " | ".join(results), flagged[0].doc)]


def function(name: str, rows: list[dict], method: bool, indent: str = "", without: str = "") -> list[str]:
    """A function of a stub, with an overload for each way to call it."""
    overloads: list[Overload] = []
    alone = any(len(parameters(r["signature"], method)) == 1 for r in rows)
    for row in rows:
        for one in variants(row, method, row["out"] and not method and not name.endswith("_"), alone):
            one = one._replace(parameters=[p for p in one.parameters if not without or not p.startswith(f"{without}:")])
            if one.bare() not in [o.bare() for o in overloads]:
                overloads.append(one)
    overloads += undecided(overloads)
    lines = []
    for one in overloads:
        doc = one.doc if method else rename_self(one.doc)
        lines += [f"{indent}@overload"] if len(overloads) > 1 else []
        lines += [f"{indent}def {name}({', '.join(one.parameters)}) -> {one.returns}:", f'{indent}    """{doc}"""']
    return lines


def rename_self(doc: str) -> str:
    """Replaces the word `self` by `input`, the name of a function's first parameter."""
    return re.sub(r"\bself\b", "input", doc)
