"""Records the signatures of PyTorch's public functions: python tests/golden/record_signatures.py > tests/golden/signatures.json

`inspect` sees no signatures of built-in functions: those of the top level and of Tensor are in PyTorch's stubs,
the rest in the schemas of its operators, which also tell what is keyword-only, or may not be None, where a stub is
too permissive. `name?` marks a parameter that may be None. Overloads with dimension names or other devices are omitted.
"""

import ast
import inspect
import json
import re
import sys
from pathlib import Path

import torch
from record_names import public

SPACES = ("torch", "Tensor", "linalg", "special", "fft", "nn.functional", "nn.init", "nn.utils", "autograd")
NAMES = re.compile(r"\bDimname\b|\bEllipsisType\b|\bstr \| .*None|Sequence\[str")
ELSEWHERE = ("out_dtype",)


def render(params):
    """`[(name, takes None, default, keyword-only)]` as one string."""
    out, star = [], False
    for name, none, default, keyword in params:
        if keyword and not star:
            out.append("*")
            star = True
        out.append(name + "?" * none + ("" if default is None else f"={default}"))
    return ", ".join(out)


def spelled(text):
    """A default in canonical form: `1` for 1.0, `()` for []."""
    text = text.replace("torch.", "")
    if text.startswith("<"):
        return "..."
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        value = int(value)
    return repr(value)


def of_stub(node):
    """The parameters of a function in a stub; None for an overload that is omitted."""
    args = node.args
    plain = args.posonlyargs + args.args
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    pairs = [(a, d, False) for a, d in zip(plain, defaults)]
    if args.vararg:
        pairs.append((ast.arg("*" + args.vararg.arg, args.vararg.annotation), None, False))
    pairs += [(a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    rows = []
    for a, default, keyword in pairs:
        kind = ast.unparse(a.annotation) if a.annotation else ""
        by_name = NAMES.search(kind) and "int" not in kind and a.arg in ("dim", "dims", "names", "start_dim", "axis")
        if by_name or a.arg in ELSEWHERE:
            return None
        text = None if default is None else spelled(ast.unparse(default))
        # An empty list of dimensions may be None.
        none = "None" in kind.split(" | ") or (text == "()" and "_size" in kind)
        rows.append((a.arg, none, text, keyword))
    return rows


def stubs():
    """`{name: [parameters of each overload]}` of the stubs of the top level and of Tensor."""
    folder, found = Path(torch.__file__).parent / "_C", {}
    main = ast.parse((folder / "__init__.pyi").read_text()).body
    tensor = next(n for n in main if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    bodies = {"torch": ast.parse((folder / "_VariableFunctions.pyi").read_text()).body, "Tensor": tensor.body}
    for space, body in bodies.items():
        for node in body:
            rows = of_stub(node) if isinstance(node, ast.FunctionDef) else None
            if rows is not None:
                overloads = found.setdefault(f"{space}.{node.name}", [])
                overloads.append(rows[1:] if space == "Tensor" and rows and rows[0][0] == "self" else rows)
    return found


def schemas():
    """`{operator: [(parameters, whether it has out=)]}`."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or any(a.name in ELSEWHERE for a in schema.arguments):
            continue
        rows = []
        for a in schema.arguments:
            name = "input" if a.name == "self" else a.name
            default = spelled(repr(a.default_value)) if a.has_default_value() else None
            if not a.is_out:
                rows.append((name, str(a.type).startswith("Optional"), default, a.kwarg_only))
        found.setdefault(schema.name.removeprefix("aten::"), []).append((rows, any(a.is_out for a in schema.arguments)))
    return found


def of_schemas(overloads):
    """The overloads of an operator, `out=` added to those that have it."""
    with_out = [rows for rows, out in overloads if out]
    plain = [rows for rows, out in overloads if not out]
    return [[*rows, ("out", True, "None", True)] if rows in with_out else rows for rows in plain]


def narrowed(rows, overloads):
    """A stub's overload, with the keyword-only parameters of the matching schema."""
    for schema, _ in overloads:
        by_name = {r[0]: r for r in schema}
        # A stub cannot call a parameter `from`.
        rows = [(n.removesuffix("_") if n not in by_name else n, *rest) for n, *rest in rows]
        if [r[0] for r in rows if r[0] != "out"] == [r[0] for r in schema]:
            return [
                (n, none and (n == "out" or d == "()" or by_name[n][1]), d, keyword or (n in by_name and by_name[n][3]))
                for n, none, d, keyword in rows
            ]
    return rows


def of_python(function):
    """The parameters of a function written in Python; None if it has no signature."""
    try:
        params = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return None
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL, p.POSITIONAL_ONLY) for p in params):
        return None
    rows = []
    for p in params:
        default = None if p.default is p.empty else spelled(repr(p.default))
        annotated = "None" in str(p.annotation) or "Optional" in str(p.annotation)
        rows.append((p.name, default == "None" or annotated, default, p.kind is p.KEYWORD_ONLY))
    return rows


def signatures(space, name, stub, schema):
    """The overloads of one public name; None if PyTorch does not provide them."""
    root = torch
    for part in space.split(".") if space != "torch" else ():
        root = getattr(root, part)
    value = getattr(root, name, None)
    if isinstance(value, type) or not callable(value):
        return None
    method = space == "Tensor"
    if not inspect.isfunction(value):
        if f"{space}.{name}" in stub:
            known = [narrowed(rows, schema.get(name, [])) for rows in stub[f"{space}.{name}"]]
            if method:
                known = [narrowed([("input", 0, None, False), *rows], schema.get(name, []))[1:] for rows in known]
            return known
        operator = {"nn.functional": name}.get(space, f"{space}_{name}")
        return of_schemas(schema[operator]) if operator in schema else None
    rows = of_python(value)
    if rows is None:
        return None
    return [rows[1:] if method and rows and rows[0][0] == "self" else rows]


def main():
    stub, schema, found = stubs(), schemas(), {}
    for space in SPACES:
        for name in public(space):
            overloads = signatures(space, name, stub, schema)
            if overloads:
                found[f"{space}.{name}"] = sorted({render(rows) for rows in overloads})
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    sys.stdout.write(f'{{"version": "{torch.__version__}", "signatures": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
