"""Behaviour as data: a case is a function of the module under test, its outcome is JSON.

`golden/record_graph.py` runs the cases of `tests/graph/` with PyTorch and keeps the outcomes; the tests run the same
functions with rustgrad. So the code that is compared is written once, and every difference is a failing test.
"""

import json
import pathlib
import re
import warnings

RECORD = pathlib.Path(__file__).parents[1] / "golden" / "graph.json"


def plain(value):
    """A value as JSON: tensors as nested lists, classes and other objects by name."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, complex):
        return f"{value.real:.5g}{value.imag:+.5g}j"
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.detach().tolist())
    if isinstance(value, type):
        return value.__name__
    return words(value)


def words(value):
    """A text without tracebacks and source positions, which depend on the machine."""
    return re.split(r" \(Triggered internally|  File ", str(value).replace("rustgrad.", "torch."))[0].strip()


def outcome(case, torch):
    """The outcome of a case: its value and warnings, or the class and message of its exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = {"value": plain(case(torch))}
        except Exception as error:
            found = {"error": type(error).__name__, "message": words(error)}
    # PyTorch warns of this once per process, so it depends on what ran before.
    caught = [w for w in caught if "create a reference cycle" not in str(w.message)]
    if caught:
        found["warnings"] = [[w.category.__name__, words(w.message)] for w in caught]
    return found


def same(got, want):
    """Whether two outcomes agree: values and classes are equal, and PyTorch's words are in the message."""
    if got.get("value") != want.get("value") or got.get("error") != want.get("error"):
        return False
    if [w[0] for w in got.get("warnings", ())] != [w[0] for w in want.get("warnings", ())]:
        return False
    texts = [(got.get("message", ""), want.get("message", ""))]
    texts += [(g[1], w[1]) for g, w in zip(got.get("warnings", ()), want.get("warnings", ()))]
    return all(w.rstrip(".") in g for g, w in texts)


def names(node, depth=6):
    """The graph behind a node in one line: `MulBackward0(AccumulateGrad, None)`."""
    if node is None:
        return "None"
    below = [names(n, depth - 1) for n, _ in node.next_functions] if depth else []
    return node.name().removeprefix("torch::autograd::") + (f"({', '.join(below)})" if below else "")


def read():
    """The recorded outcomes by name."""
    return json.loads(RECORD.read_text())
