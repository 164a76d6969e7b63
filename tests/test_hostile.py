"""Objects that do harm when they are converted, a bounded number of times: see `support.hostile`.

Fails on a crash or a hang, on a panic, and on exceptions that user input may not raise. With one thread a seed is
reproducible; with several the order depends on the scheduler.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import target

CALLS = int(os.environ.get("RUSTGRAD_HOSTILE_CALLS", "1500"))

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="PyTorch makes no such promise")


@pytest.mark.parametrize(("seed", "threads"), [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3), (6, 3)])
def test_hostile_objects(seed, threads, tmp_path):
    environment = {
        **os.environ,
        "RUSTGRAD_TEST_MODULE": target.NAME,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    }
    place = str(tmp_path / "last_call")
    arguments = [str(seed), str(CALLS // threads), str(threads), place]
    command = [sys.executable, "-X", "faulthandler", "-m", "support.hostile", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs in {[p.read_text() for p in tmp_path.iterdir()]}")
    *problems, last = [*done.stdout.splitlines(), ""][:-1] or [""]
    if done.returncode or last != "done":
        at = [p.read_text() for p in tmp_path.iterdir()]
        pytest.fail(f"the process ended with {done.returncode} in {at}\n{done.stderr[-3000:]}")
    assert not problems, f"{len(problems)} calls:\n" + "\n".join(problems[:20])
