"""Times rustgrad beside a peer in the same run and writes benches/RESULTS.md.

    python benches/run.py --peer-python ~/torch/bin/python     # the peer's column; without it, rustgrad's times alone
    python benches/run.py --build                              # clean and incremental build times too (minutes)
    python benches/run.py --parts images layers                # the rows of these functions of rows.py alone
    python benches/run.py --threads 1                          # one thread each, for a machine that is not idle
    python benches/run.py --gpu --peer-python ~/torch/bin/python  # the rows of gpu.py, on a hardware GPU

Each module runs in separate processes, alternating, and a row's figure is the median over the rounds. Goals are the
project's; a row without a goal is only monitored.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import programs

# What the widest kernels of both libraries depend on, by the name that Linux gives it.
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benches" / "RESULTS.md"
MARK = "<!-- runs, newest first -->\n"
HEAD = f"""# Measurements

Written by `make bench`. A ratio is rustgrad's time over the peer's in the same run on the same machine; lower is better.
Medians of several rounds, the modules taking turns in processes of their own, each with its default threads.

{MARK}"""
# Row -> goal: the largest acceptable ratio to PyTorch on the CPU.
GOALS = {
    "a + b, 4 floats": 0.25,
    "a + b, 4 floats, recorded": 0.2,
    "view: x[0]": 0.3,
    "view: x.view(16)": 0.3,
    "view: x.transpose(0, 1)": 0.3,
    "backward, chain of 1,000 ops, a node": 0.25,
    "MLP 64-32-10, batch 32, Adam, a step": 0.35,
    "a + b, 10M floats": 0.4,
    "tanh, 10M floats": 0.4,
    "exp, 10M floats": 0.4,
    "relu, 10M floats": 0.4,
    "matmul f32, 256": 1.15,
    "matmul f32, 512": 1.15,
    "matmul f32, 1024": 1.15,
    "matmul f32, 2048": 1.15,
    "repr, 1000 x 1000": 0.5,
    "vmap of grad, MLP 64-32-10, 64 samples": 1.0,
    "hessian of 50 variables": 1.0,
    "jvp of an MLP, 64 samples": 1.0,
    **dict.fromkeys(
        (
            "batch_norm and backward, 32 x 64 x 28 x 28",
            "batch_norm and backward, 64 x 512",
            "group_norm(8) and backward, 32 x 64 x 28 x 28",
            "layer_norm and backward, 64 x 512",
            "rms_norm and backward, 64 x 512",
        ),
        0.8,
    ),
    **dict.fromkeys(
        (
            "max_pool2d(2) and backward, 32 x 64 x 28 x 28",
            "max_pool2d(3, 2, 1) and backward, 32 x 64 x 28 x 28",
            "avg_pool2d(2) and backward, 32 x 64 x 28 x 28",
            "adaptive_avg_pool2d(7) and backward, 32 x 64 x 28 x 28",
        ),
        0.5,
    ),
    **dict.fromkeys(("exp, 1M", "tanh, 1M", "sigmoid, 1M"), 0.7),
    **dict.fromkeys(("sum(0), 4096 x 4096", "sum(1), 4096 x 4096"), 1.0),
    **dict.fromkeys(
        (
            "x[idx], 1M",
            "x[mask], 1M",
            "x[idx] = v, 1M",
            "x[mask] = 1, 1M",
            "gather(1), 1000 x 1000",
            "gather(0), 1000 x 1000",
            "scatter(1), 1000 x 1000",
            "scatter_add(0), 1000 x 1000",
            "index_select(0), 1000 x 1000",
            "index_select(1), 1000 x 1000",
            "masked_fill, 1M",
            "masked_select, 1M",
            "where, 1M",
            "index_add, 1M",
            "take, 1M",
            "nonzero, 1M",
            "sort, 1M float32",
            "sort, 1M int64",
            "argsort, 1M",
            "sort(-1), 1000 x 1000",
            "topk 10, 1M",
            "topk 1000, 1M",
            "topk 5, rows of 1000 x 1000",
        ),
        1.0,
    ),
    **dict.fromkeys(
        (
            "cat(0), 2 of 1M",
            "cat(1), 2 of 1M",
            "stack, 2 of 1M",
            "stack(-1), 2 of 1M",
            "t().contiguous(), 1000 x 1000",
            "NCHW to NHWC, 1M",
            "flip(1), 1000 x 1000",
            "repeat(2, 2), 1000 x 1000",
            "tril, 1000 x 1000",
        ),
        0.7,
    ),
    **dict.fromkeys((f"{name}, a step" for name in programs.MODELS), 0.7),
    **dict.fromkeys((f"{name}, a step, compiled" for name in programs.MODELS), 0.5),
    "MLP 64-32-10, batch 32, Adam, a step, compiled": 0.1,
    "char-GPT, 4 layers of 64, 8 x 64, AdamW, a step, compiled": 0.5,
    **dict.fromkeys((f"{kind}, a step of 100 x 32 x 32" for kind in programs.OPTIMIZERS), 0.15),
    "DataLoader, 2 processes, 10,000 samples": 1.0,
    "torch.load of 500 MB, mapped": 0.5,
    "softmax(1), 65536 x 16": 0.8,
    "softmax(-1) of masked 32 x 64 x 64": 0.8,
    "memory: char-GPT, 4 layers of 128, steps, compiled": 1.0,
}


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def rounds(script: str, pythons: dict[str, str], count: int, given: list[str]) -> dict[str, dict]:
    """Runs a script of rows for each module in turns; {module: {"version", "device", "rows": {row: median}}}."""
    found: dict[str, list] = {module: [] for module in pythons}
    for turn in range(count):
        for module, python in pythons.items():
            print(f"round {turn + 1} of {count}: {module}", file=sys.stderr)
            command = [python, ROOT / "benches" / script, module, *given]
            out = subprocess.run(command, capture_output=True, text=True)
            if out.returncode:
                sys.exit(f"{module} failed:\n{out.stderr}")
            found[module].append(json.loads(out.stdout))
    return {
        module: {
            "version": runs[0]["version"],
            "device": runs[0].get("device"),
            "rows": {
                row: None if v is None else median([r["rows"][row] for r in runs]) for row, v in runs[0]["rows"].items()
            },
        }
        for module, runs in found.items()
    }


def import_times(python: str, module: str) -> float:
    """Seconds to import a module in a fresh interpreter, without the interpreter's own start."""

    def once(code):
        start = time.perf_counter()
        subprocess.run([python, "-c", code], check=True)
        return time.perf_counter() - start

    once(f"import {module}")
    return median([once(f"import {module}") for _ in range(7)]) - median([once("pass") for _ in range(7)])


def numpy_free() -> str:
    code = "import sys, rustgrad; print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return "no" if out.stdout.strip() == "False" else "yes"


def build_times() -> list[str]:
    """Clean and incremental builds of the profiles in use, in a separate target folder."""
    lines = []
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(ROOT / "target" / "bench-build"),
        "PYO3_PYTHON": sys.executable,
    }
    subprocess.run(["cargo", "clean"], cwd=ROOT, env=environment, check=True)
    for profile in ("dev", "dist"):
        for what in ("clean", "incremental"):
            (ROOT / "src" / "lib.rs").touch()
            start = time.perf_counter()
            command = ["cargo", "build", "--locked", "--lib", "--profile", profile, "--features", "python"]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
            lines.append(f"| {what} build, profile {profile} | {time.perf_counter() - start:.0f} s | | | |")
    return lines


def shown(seconds: float | None) -> str:
    if seconds is None:
        return "failed"
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3), ("s", 1)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def machine() -> str:
    name = platform.processor() or platform.machine()
    try:
        said = dict(re.findall(r"^(model name|flags)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M))
        widest = next((isa for flag, isa in VECTORS.items() if flag in said["flags"].split()), "no AVX2")
        name = f"{said['model name']} ({widest})"
    except (OSError, KeyError):
        pass
    return f"{name}, {os.cpu_count()} threads, {platform.system()}, Python {platform.python_version()}"


def commit() -> str:
    out = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return out.stdout.strip() or "unknown"


def table(results: dict[str, dict], peer: str | None, goals: dict[str, float]) -> list[str]:
    lines = [f"| row | rustgrad | {peer or 'peer'} | ratio | goal |", "|---|---:|---:|---:|---:|"]
    others = results[peer]["rows"] if peer else {}
    for row, seconds in results["rustgrad"]["rows"].items():
        other = others.get(row)
        ratio = seconds / other if seconds and other else None
        goal = goals.get(row)
        unit = (lambda n: f"{n / 1e6:.3g} MB") if row.startswith("memory: ") else shown
        verdict = "" if goal is None else f"<= {goal}" + ("" if ratio is None or ratio <= goal else " **missed**")
        lines.append(
            f"| {row} | {unit(seconds)} | {unit(other) if other else ''} | {f'{ratio:.2f}' if ratio else ''} | {verdict} |"
        )
    return lines


def wheel_row() -> list[str]:
    # `make wheel` compresses it once more.
    wheels = list(ROOT.glob("dist/*.whl")) or list(ROOT.glob("target/wheels-dist/*.whl"))
    if not wheels:
        return []
    size = max(wheels, key=lambda p: p.stat().st_mtime).stat().st_size
    return [f"| wheel | {size / 1e6:.2f} MB | | | <= 8 MB{'' if size <= 8e6 else ' **missed**'} |"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="a Python that can import the peer")
    parser.add_argument("--peer", default="torch", help="the peer's module (torch)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="threads for each module (its default)")
    parser.add_argument("--parts", nargs="+", default=[], help="functions of rows.py, or of gpu.py (all)")
    parser.add_argument("--gpu", action="store_true", help="the rows of gpu.py")
    parser.add_argument("--build", action="store_true", help="measure build times too")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    peer = options.peer if options.peer_python else None
    pythons = {"rustgrad": sys.executable} | ({peer: options.peer_python} if peer else {})
    if options.gpu:
        results = rounds("gpu.py", pythons, options.rounds, options.parts)
    else:
        results = rounds("rows.py", pythons, options.rounds, [str(options.threads or 0), *options.parts])
    lines = table(results, peer, {} if options.gpu else GOALS)
    if not options.gpu:
        own = import_times(sys.executable, "rustgrad")
        other = import_times(options.peer_python, peer) if peer else None
        lines.append(
            f"| import (NumPy with it: {numpy_free()}) | {shown(own)} | {shown(other) if other else ''} | | <= 50 ms |"
        )
        lines += wheel_row() + (build_times() if options.build else [])
    versions = ", ".join(f"{module} {r['version']}" for module, r in results.items())
    used = f" {options.threads} thread(s) each." if options.threads else ""
    on = f" On {results['rustgrad']['device']}." if options.gpu else ""
    text = "\n".join([f"## {date.today()}, {commit()}", "", f"{machine()}. {versions}.{used}{on}", "", *lines, "", ""])
    print(text)
    if not options.dry:
        before = RESULTS.read_text() if RESULTS.exists() else HEAD
        head, mark, runs = before.partition(MARK)
        RESULTS.write_text(head + mark + "\n" + text.rstrip() + "\n" + runs if mark else HEAD + "\n" + text)


if __name__ == "__main__":
    main()
