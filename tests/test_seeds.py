"""Runs the programs of the documents that the project was created from, and compares what they print.

Each test is named after its document. On the GPU the same program runs with it as the default device;
its tensors then also print their device, and nothing else may differ. Addresses are ignored.
"""

import ast
import contextlib
import io
import re

import pytest
from seed_on_cpu import CPU_ONLY
from seed_programs import PROGRAMS
from seed_tensors import TENSORS


def plain(text):
    """Text without addresses (a notebook prints `<X at 0x1>` for `<X object at 0x1>`), devices, and outer blanks."""
    text = re.sub(r"<(\w+)(?: object)? at 0x[0-9a-fA-F]+>", r"<\1>", text)
    text = re.sub(r",\s+device='gpu:\d+'", "", text)
    return re.sub(r"[ \t]+\n", "\n", text).strip()


def ours(torch, code):
    """The program with its imports from the module under test."""
    code = re.sub(r"^import torch$", "", code, flags=re.M)
    return re.sub(r"^from torch\b", f"from {torch.__name__}", code, flags=re.M)


def run(torch, code, device):
    """What the program prints."""
    code = ours(torch, code)
    out = io.StringIO()
    torch.set_default_device(device)
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, "seed", "exec"), {"torch": torch, "show": lambda x: print(repr(x))})
    finally:
        torch.set_default_device("cpu")
    return out.getvalue()


def as_function(code):
    """The program as the body of a function, which a later call runs again."""
    tree = ast.parse(code)
    empty = ast.parse("def program():\n    pass")
    empty.body[0].body = tree.body
    return ast.unparse(empty)


def named(programs):
    return [pytest.param(code, output, id=f"{document}-{name}") for document, name, code, output in programs]


@pytest.mark.parametrize(("code", "output"), named(PROGRAMS))
def test_graph(torch, device, code, output):
    assert plain(run(torch, code, device)) == plain(output)


@pytest.mark.parametrize(("code", "output"), named(TENSORS))
def test_tensors(torch, device, code, output):
    assert plain(run(torch, code, device)) == plain(output)


@pytest.mark.parametrize(("code", "output"), named(PROGRAMS))
@pytest.mark.filterwarnings("ignore")
def test_compiled(torch, code, output):
    """A compiled program prints in each of its calls what it prints."""
    text = f"{as_function(ours(torch, code))}\ncalled = torch.compile(program)\nfor _ in range(5):\n    print('----')\n    called()"
    calls = run(torch, text, "cpu").split("----\n")[1:]
    assert len(calls) == 5 and all(plain(told) == plain(output) for told in calls)


@pytest.mark.parametrize(("code", "output"), named(CPU_ONLY))
@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_on_the_cpu(torch, code, output):
    if "numpy" in code:
        pytest.importorskip("numpy")
    assert plain(run(torch, code, "cpu")) == plain(output)
