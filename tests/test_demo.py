"""The demo, three epochs long: it trains, prints its summary and leaves its three pictures, and compiled has the same figures."""

import os
import pathlib
import subprocess
import sys

import pytest
from support import target

DEMO = pathlib.Path(__file__).parents[1] / "examples" / "demo.py"
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the demo is about rustgrad itself")


def ran(out, compiled):
    """What the demo wrote to its two streams."""
    for needed in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed, reason="the demo's extra is not installed; `make test` installs it")
    command = [sys.executable, DEMO, "--epochs", "3", "--batch-size", "400", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COMPILE": compiled})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, done.stderr


def test_it_leaves_its_pictures_and_compiled_it_has_the_same_figures(tmp_path):
    out = tmp_path / "out"
    told = []
    for compiled in ("0", "1"):
        printed, shown = ran(out, compiled)
        last = shown.replace("\r", "\n").strip().splitlines()[-1]
        told.append(([line for line in printed.splitlines() if "accuracy" in line], last.split("loss", 1)[1]))
        if compiled == "0":
            assert "held-out accuracy" in printed
            assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
            assert (out / "mistakes.png").read_bytes().startswith(b"\x89PNG")
            assert "AccumulateGrad" in (out / "graph.svg").read_text()
    assert told[0] == told[1] and "a step, compiled" in printed
