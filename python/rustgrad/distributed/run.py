"""`python -m rustgrad.distributed.run script.py [arguments]`: what `torchrun` does, for one process, which it is itself.

The environment says so to the script: RANK=0, WORLD_SIZE=1 and so on. A script of PyTorch runs as under `python -m rustgrad`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

__all__ = ["get_args_parser", "main", "parse_args", "parse_min_max_nnodes", "run"]

_PORT = 29500


def get_args_parser() -> argparse.ArgumentParser:
    """The options of `torchrun`; those about processes beyond the first have no effect."""
    parser = argparse.ArgumentParser(
        prog="rustgrad.distributed.run", description="Runs a script in a world of one process.", allow_abbrev=False
    )
    option = parser.add_argument
    for names, default, text in (
        (("--nnodes",), "1:1", "number of machines: 1"),
        (("--nproc-per-node", "--nproc_per_node"), "1", "number of processes: 1, or auto, cpu or gpu"),
        (("--node-rank", "--node_rank"), "0", "number of this machine: 0"),
        (("--rdzv-backend", "--rdzv_backend"), "static", "how processes would find each other"),
        (("--rdzv-endpoint", "--rdzv_endpoint"), "", "where"),
        (("--rdzv-id", "--rdzv_id"), "none", "the name of the run"),
        (("--rdzv-conf", "--rdzv_conf"), "", "more about it"),
        (("--max-restarts", "--max_restarts"), "0", "not taken: an error ends the run"),
        (("--monitor-interval", "--monitor_interval"), "0.1", "without effect"),
        (("--start-method", "--start_method"), "spawn", "without effect"),
        (("--role",), "default", "the name of the processes"),
        (("--log-dir", "--log_dir"), None, "not taken: output goes to the terminal"),
        (("-r", "--redirects"), "0", "not taken"),
        (("-t", "--tee"), "0", "not taken"),
        (("--local-addr", "--local_addr"), None, "without effect"),
        (("--master-addr", "--master_addr"), "127.0.0.1", "MASTER_ADDR of the script"),
        (("--master-port", "--master_port"), str(_PORT), "MASTER_PORT of the script"),
    ):
        option(*names, default=default, help=text)
    option("--standalone", action="store_true", help="without effect")
    option("-m", "--module", action="store_true", help="the script is the name of a module")
    option("--no-python", "--no_python", action="store_true", help="refused: the script is Python's")
    option("--run-path", "--run_path", action="store_true", help="without effect")
    option("training_script", help="the script")
    option("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    """The options, the script and its arguments."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """(least, greatest) number of machines of `"2"` or `"1:4"`."""
    numbers = [int(text) for text in nnodes.split(":")]
    if len(numbers) not in (1, 2):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return numbers[0], numbers[-1]


def _check(args: argparse.Namespace) -> None:
    least, _ = parse_min_max_nnodes(args.nnodes)
    if least > 1 or args.nproc_per_node not in ("1", "auto", "cpu", "gpu", "xpu"):
        raise NotImplementedError(
            f"distributed.run: there is no communication between processes; expected --nnodes=1 --nproc-per-node=1, got "
            f"--nnodes={args.nnodes} --nproc-per-node={args.nproc_per_node}."
        )
    if args.no_python:
        raise NotImplementedError("distributed.run: expected a script of Python, got --no-python.")


def _environment(args: argparse.Namespace) -> dict[str, str]:
    zeros = dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "TORCHELASTIC_RESTART_COUNT"), "0")
    ones = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"), "1")
    host, _, port = args.rdzv_endpoint.partition(":")
    return {
        **zeros,
        **ones,
        "ROLE_NAME": args.role,
        "MASTER_ADDR": host or args.master_addr,
        "MASTER_PORT": port or args.master_port,
        "TORCHELASTIC_MAX_RESTARTS": args.max_restarts,
        "TORCHELASTIC_RUN_ID": args.rdzv_id,
    }


def run(args: argparse.Namespace) -> int:
    """Runs the script in this process, as the only one of its world; returns the exit code.

    Raises:
        NotImplementedError: more than one process is asked for.
    """
    from ..__main__ import main as run_script

    _check(args)
    os.environ.update(_environment(args))
    return run_script([*(["-m"] if args.module else []), args.training_script, *args.training_script_args])


def main(args: Sequence[str] | None = None) -> None:
    """The command: exits with the script's code if it failed."""
    code = run(parse_args(args))
    if code:
        sys.exit(code)


def __dir__() -> list[str]:
    return __all__


if __name__ == "__main__":
    main()
