"""Every op of the table with random good and bad arguments, a bounded number of times.

Fails on a crash or a hang (the calls run in separate processes), on a panic, and on an exception of a class that
user input may not raise. The seed is the op's name, so a failure is reproducible.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import need
from support import target
from support.optable import ops

CALLS = int(os.environ.get("RUSTGRAD_FUZZ_CALLS", "100"))
CHUNK = 20
SECONDS = 120


@pytest.mark.parametrize(
    ("device", "first"), [(d, first) for d in ("cpu", "gpu") for first in range(0, len(ops()), CHUNK)]
)
def test_no_call_crashes_or_raises_what_it_may_not(device, first, tmp_path):
    need(device)
    place = tmp_path / "last_call"
    place.touch()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "support.fuzzing",
        str(first),
        str(first + CHUNK),
        str(CALLS if device == "cpu" else CALLS // 5),
        str(place),
        device,
    ]
    environment = {
        **os.environ,
        "RUSTGRAD_TEST_MODULE": target.NAME,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    }
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs in {place.read_text()}")
    *problems, last = [*done.stdout.splitlines(), ""][:-1] or [""]
    if done.returncode or last != "done":
        pytest.fail(f"the process ended with {done.returncode} in {place.read_text()}\n{done.stderr[-2000:]}")
    assert not problems, f"{len(problems)} calls:\n" + "\n".join(problems[:20])
