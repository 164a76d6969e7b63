"""Calls with concurrent writes to their operands: any result or an error, never an invalid access or a panic."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import target
from support.optable import ops

SECONDS = os.environ.get("RUSTGRAD_RACE_SECONDS", "0.1")
CALLS = os.environ.get("RUSTGRAD_RACE_CALLS", "10")
CHUNK = 200


def lives(module, *arguments, place):
    """Runs a module of tests/support to its end, marked by a last line; any other line is a problem."""
    place.touch()
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "RUSTGRAD_TEST_MODULE": target.NAME, "PYTHONPATH": path},
    )
    *problems, last = [*done.stdout.splitlines(), ""][:-1] or [""]
    if done.returncode or last != "done":
        pytest.fail(f"the process ended with {done.returncode} in {place.read_text()}\n{done.stderr[-2000:]}")
    assert not problems, "\n".join(problems)


def test_an_index_that_another_thread_writes_does_no_harm(tmp_path):
    lives("support.racing", SECONDS, tmp_path / "call", place=tmp_path / "call")


@pytest.mark.parametrize("first", range(0, len(ops()), CHUNK))
def test_operands_that_another_process_writes_do_no_harm(first, tmp_path):
    lives("support.scribbling", first, first + CHUNK, CALLS, tmp_path / "call", place=tmp_path / "call")
