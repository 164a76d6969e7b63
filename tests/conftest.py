"""The tests' command line, their devices, and a summary of what they covered.

--module torch     runs the tests with PyTorch instead of rustgrad (without the device `gpu`)
The `device` fixture runs a test on the CPU and on the GPU device; without a GPU, its half is skipped and counted.
"""

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption("--module", default="rustgrad", help="the module under test")


def pytest_configure(config):
    os.environ["RUSTGRAD_TEST_MODULE"] = config.getoption("--module")


@pytest.fixture(scope="session")
def torch():
    from support import target

    return target.torch


@pytest.fixture(params=["cpu", "gpu"])
def device(request):
    need(request.param)
    return request.param


def need(device: str):
    """Skips if the device is not available."""
    from support import target

    if device == "gpu" and (reason := target.gpu_reason()):
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def fresh_state(torch):
    """Restores seed, default dtype and print options after each test."""
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")


def pytest_collection_finish(session):
    """Leaves the tests themselves out of garbage collections, which would walk through millions of their objects each time."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Prints one line per property of the op table: ops, samples, results."""
    counts: dict[str, Counter] = {}
    outcomes = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped", "xfailed": "xfailed"}
    for outcome, reports in terminalreporter.stats.items():
        for report in reports if outcome in outcomes else ():
            properties = dict(getattr(report, "user_properties", ()))
            if "property" in properties:
                row = counts.setdefault(f"{properties['property']} on {properties['device']}", Counter())
                row[outcomes[outcome]] += 1
                row["samples"] += properties.get("samples", 0)
    if not counts:
        return
    terminalreporter.section("op table")
    columns = ["passed", "failed", "xfailed", "skipped", "samples"]
    terminalreporter.write_line(f"{'property':28}" + "".join(f"{c:>9}" for c in columns))
    for name in sorted(counts):
        terminalreporter.write_line(f"{name:28}" + "".join(f"{counts[name][c]:>9}" for c in columns))
    total = sum((c for c in counts.values()), Counter())
    terminalreporter.write_line(f"{'total (ops x properties)':28}" + "".join(f"{total[c]:>9}" for c in columns))


@pytest.fixture
def warn_always(torch):
    """Warnings that come once in a process come every time."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)
