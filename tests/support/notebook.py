"""Runs the cells of a notebook, without Jupyter, and gives their outputs in the form in which a notebook stores them."""

import ast
import contextlib
import io
import re


def lines(text):
    return text.splitlines(keepends=True)


def plain(text):
    """Text without addresses."""
    return re.sub(r"0x[0-9a-fA-F]+", "0x..", text)


def execute(source, names):
    """The outputs of a cell: what it printed, then its last expression as text and, if it is one, as a picture."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_svg_"):
            data = {"image/svg+xml": lines(value._repr_svg_()), "text/plain": ["<picture>"]}
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def comparable(outputs):
    """Outputs without counts and addresses, the text of a stored cell and of a run one alike."""
    found = []
    for output in outputs:
        texts = output.get("text") or [part for key, part in sorted(output["data"].items())]
        flat = "".join("".join(t) if isinstance(t, list) else t for t in texts)
        found.append((output["output_type"], plain(flat)))
    return found
