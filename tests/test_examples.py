"""The examples, a few steps long: each trains, says what came out and leaves its picture; the notebook's outputs are what its cells give."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest
from support import target
from support.notebook import comparable, execute
from test_compile import trail

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


def steps_of(name, torch):
    """A step of an example: its model, its loss and its optimizer, and the arguments of call i."""
    example = importlib.import_module(name)
    F = torch.nn.functional
    pick = torch.randint
    if name == "cnn_digits":
        model = example.Net(8)
        made = lambda i: (torch.rand(6, 1, 8, 8), pick(10, (6,)))  # noqa: E731
        loss_of = lambda x, y: F.cross_entropy(model(x), y)  # noqa: E731
    elif name == "char_transformer":
        model = example.Writer(11, 8, 16, 4, 1)
        made = lambda i: (pick(11, (4, 8)), pick(11, (4, 8)))  # noqa: E731
        loss_of = lambda x, y: example.loss_of(model, x, y)  # noqa: E731
    elif name == "vae_digits":
        model = example.VAE(64, 16)
        made = lambda i: (torch.rand(5, 64),)  # noqa: E731
        loss_of = lambda x: sum(example.bound(model, x))  # noqa: E731
    else:
        model = example.Curve(8)
        made = lambda i: (torch.rand(9, 1),)  # noqa: E731
        loss_of = lambda t: example.residual(model, t).square().mean()  # noqa: E731
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-2, total_steps=40)

    def step(*batch):
        loss = loss_of(*batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    def arguments(i):
        if i:
            scheduler.step()
        return made(i)

    return step, arguments, lambda: list(model.parameters())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RUNS)
def test_a_compiled_step_of_an_example(torch, name, monkeypatch):
    """Losses, parameters and gradients of ten steps are the same, bit by bit, with and without `compile`."""
    for needed in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed, reason="the demo's extra is not installed; `make test` installs it")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    torch.compiler.reset()
    plain, _ = trail(torch, lambda: steps_of(name, torch), 10, False)
    ours, roads = trail(torch, lambda: steps_of(name, torch), 10, True)
    assert ours == plain
    print(name, roads)
