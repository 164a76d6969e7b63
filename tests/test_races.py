"""Calls while another thread writes their index or mask through NumPy: any result or an error, never foreign memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import target

SECONDS = float(os.environ.get("RUSTGRAD_RACE_SECONDS", "0.1"))


def test_an_index_that_changes_while_it_is_used_does_no_harm(tmp_path):
    pytest.importorskip("numpy", reason="NumPy is what writes")
    place = tmp_path / "last_call"
    place.touch()
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "support.racing", str(SECONDS), str(place)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "RUSTGRAD_TEST_MODULE": target.NAME, "PYTHONPATH": path},
    )
    *problems, last = [*done.stdout.splitlines(), ""][:-1] or [""]
    if done.returncode or last != "done":
        pytest.fail(f"the process ended with {done.returncode} in {place.read_text()}\n{done.stderr[-2000:]}")
    assert not problems, "\n".join(problems)
