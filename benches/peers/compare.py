"""Times rustgrad beside PyTorch, MLX, tinygrad, candle and burn on the CPU and writes benches/PEERS.md.

    python benches/peers/compare.py --torch ~/torch/bin/python --arrays ~/arrays/bin/python --rust benches/peers/rust/target/release/peers

`--arrays` is an interpreter with `mlx[cpu]` and `tinygrad` (which calls clang); `--rust` is what `cargo build --release` in
benches/peers/rust makes. A peer that is not given has no column. Each runs in processes of its own, in turns, with its
default threads; a figure is the median over the rounds. All start from the same numbers, and the losses of the models are
compared, so that all do the same work.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from run import commit, machine, median, shown  # noqa: E402

RESULTS = HERE.parent / "PEERS.md"
HEAD = """# Beside other libraries

Written by `benches/peers/compare.py`: on the CPU, medians of several rounds in turns, each library in a process of its own with its default
threads. In brackets the time as a multiple of rustgrad's. PyTorch and rustgrad run eagerly; steps in MLX are compiled by `mx.compile`, tinygrad's
by `TinyJit`, and both are made for GPUs first; candle and burn are Rust programs, without Python's part of a call. All train from the same numbers,
and agree in the loss of the fifth step to three digits.
A training step is forward, loss, backward, Adam and reading the loss.
"""


def commands(args) -> dict[str, list[str]]:
    """The command of each library that is given."""
    found = {"rustgrad": [sys.executable, HERE / "torch_like.py", "rustgrad"]}
    if args.torch:
        found["PyTorch"] = [args.torch, HERE / "torch_like.py", "torch"]
    if args.arrays:
        found |= {"MLX": [args.arrays, HERE / "mlx_rows.py"], "tinygrad": [args.arrays, HERE / "tinygrad_rows.py"]}
    if args.rust:
        found |= {"candle": [args.rust, "candle"], "burn": [args.rust, "burn"]}
    return found


def measure(command: list[str]) -> dict:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parent)))}
    out = subprocess.run(command, capture_output=True, text=True, env=environment)
    if out.returncode:
        sys.exit(f"{command} failed:\n{out.stderr}")
    return json.loads(out.stdout.splitlines()[-1])


def compare_losses(runs: dict[str, dict]) -> None:
    """Ends the program unless all libraries computed the same."""
    for name, ours in runs["rustgrad"]["losses"].items():
        for library, run in runs.items():
            if abs(run["losses"][name] - ours) > 1e-3 * abs(ours):
                sys.exit(f"{library} does not compute the same {name}: loss {run['losses'][name]}, rustgrad {ours}")


def table(rounds: dict[str, list[dict]]) -> list[str]:
    names = list(rounds)
    lines = [f"| row | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for row in rounds["rustgrad"][0]["rows"]:
        base, cells = None, []
        for library in names:
            times = [run["rows"][row] for run in rounds[library] if row in run["rows"]]
            if not times:
                cells.append("")
                continue
            found = median(times)
            base = base or found
            cells.append(shown(found) + ("" if library == "rustgrad" else f" ({found / base:.3g})"))
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--torch", "--arrays", "--rust"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rounds: dict[str, list[dict]] = {library: [] for library in commands(args)}
    for turn in range(args.rounds):
        for library, command in commands(args).items():
            print(f"round {turn + 1} of {args.rounds}: {library}", file=sys.stderr)
            rounds[library].append(measure(command))
        compare_losses({library: runs[turn] for library, runs in rounds.items()})
    versions = ", ".join(runs[0]["version"] for runs in rounds.values())
    title = f"## {date.today()}, {commit()}"
    where = f"{machine()}. {versions}."
    RESULTS.write_text("\n".join([HEAD, title, "", where, "", *table(rounds), ""]))
    print(RESULTS.read_text())


main()
