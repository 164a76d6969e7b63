"""The examples, a few steps long: each trains, says what came out and leaves its picture; the notebook's outputs are what its cells give."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from support import target
from support.notebook import comparable, execute

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the examples are about rustgrad itself")
EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
RUNS = {
    "cnn_digits": (["--steps", "20"], "held-out accuracy"),
    "char_transformer": (["--steps", "6", "--width", "16", "--layers", "1"], "held-out loss"),
    "vae_digits": (["--steps", "20", "--hidden", "16"], "held-out bound"),
    "second_derivatives": (["--steps", "6", "--width", "8"], "largest distance"),
}


@pytest.mark.parametrize("name", RUNS)
def test_example(name, tmp_path):
    for needed in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed, reason="the demo's extra is not installed; `make test` installs it")
    arguments, says = RUNS[name]
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments, "--out", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert says in done.stdout
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_notebook():
    """Every cell gives what the notebook stores; RUSTGRAD_WRITE=1 stores what the cells give now."""
    pytest.importorskip("numpy", reason="a cell shares memory with an array")
    path = EXAMPLES / "seeds.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    assert len(cells) > 20
    for number, cell in enumerate(cells, 1):
        outputs = execute("".join(cell["source"]), names)
        if os.environ.get("RUSTGRAD_WRITE"):
            cell["outputs"] = [{**o, "execution_count": number} if "data" in o else o for o in outputs]
        assert comparable(outputs) == comparable(cell["outputs"]), "".join(cell["source"])
    if os.environ.get("RUSTGRAD_WRITE"):
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
