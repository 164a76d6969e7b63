"""The demo, two epochs long: it trains, prints its summary and leaves its three pictures."""

import os
import pathlib
import subprocess
import sys

import pytest
from support import target

DEMO = pathlib.Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.mark.skipif(target.STAND_IN, reason="the demo is about rustgrad itself")
def test_demo_leaves_its_pictures(tmp_path):
    for needed in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed, reason="the demo's extra is not installed; `make test` installs it")
    done = subprocess.run(
        [sys.executable, DEMO, "--epochs", "2", "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "held-out accuracy" in done.stdout
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "mistakes.png").read_bytes().startswith(b"\x89PNG")
    assert "AccumulateGrad" in (tmp_path / "out" / "graph.svg").read_text()


@pytest.mark.skipif(target.STAND_IN, reason="the demo is about rustgrad itself")
def test_the_compiled_demo_has_the_same_figures(tmp_path):
    for needed in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed, reason="the demo's extra is not installed; `make test` installs it")
    told = []
    for compiled in ("0", "1"):
        command = [sys.executable, DEMO, "--epochs", "3", "--batch-size", "400", "--out", tmp_path / "out"]
        environment = {**os.environ, "COMPILE": compiled}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        last = done.stderr.replace("\r", "\n").strip().splitlines()[-1]
        told.append(([line for line in done.stdout.splitlines() if "accuracy" in line], last.split("loss", 1)[1]))
    assert told[0] == told[1] and "a step, compiled" in done.stdout
