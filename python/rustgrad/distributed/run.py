"""`python -m rustgrad.distributed.run`: starts a script in several processes, on one machine or several, as `torchrun` does.

The processes see rustgrad as `torch`. Each gets its numbers in environment variables (RANK, LOCAL_RANK, WORLD_SIZE,
MASTER_ADDR, MASTER_PORT ...), which `init_process_group` reads. When one fails, all are ended and, with `--max-restarts`,
started again. `agent.py` does this; here are the command line and its defaults.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Sequence
from typing import Any

from .agent import Job, launch

__all__ = ["get_args_parser", "main", "parse_args", "run"]


class _Env(argparse.Action):
    """An option whose default is the environment variable `PET_<NAME>`, as in torchrun."""

    def __init__(self, dest: str, default: Any = None, required: bool = False, **kwargs: Any) -> None:
        super().__init__(dest=dest, default=os.environ.get(f"PET_{dest.upper()}", default), required=False, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command line; options may be written with dashes or underscores."""
    parser = argparse.ArgumentParser(
        prog="rustgrad.distributed.run", description="Starts a script in several processes that communicate."
    )

    def option(name: str, **kwargs: Any) -> None:
        names = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*names, **({"action": _Env} if "action" not in kwargs else {}), **kwargs)

    option("nnodes", default="1", help="machines, or MIN:MAX")
    option("nproc-per-node", default="1", help="processes on this machine: a number, cpu, gpu or auto")
    option("rdzv-backend", default="static", help="static or c10d: how machines find each other")
    option("rdzv-endpoint", default="", help="HOST:PORT of the machine that holds the store")
    option("rdzv-id", default="none", help="the name of the job")
    option("rdzv-conf", default="", help="key=value pairs; `timeout` and `join_timeout` in seconds are used")
    option("standalone", action="store_true", help="one machine, with a free port")
    option("max-restarts", type=int, default=0, help="how often the processes are started again after a failure")
    option("monitor-interval", type=float, default=0.1, help="seconds between looks at the processes")
    option("start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="accepted")
    option("role", default="default", help="the name of what the processes do")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    option("no-python", action="store_true", help="run the script itself, without Python")
    option("run-path", action="store_true", help="accepted")
    option("log-dir", default=None, help="a folder for what the processes write")
    parser.add_argument("-r", "--redirects", action=_Env, default="0", help="1 stdout, 2 stderr, 3 both: to --log-dir")
    parser.add_argument("-t", "--tee", action=_Env, default="0", help="not supported: use --redirects")
    option("local-ranks-filter", default="", help="numbers of the processes whose output is shown")
    option("node-rank", type=int, default=None, help="the number of this machine")
    option("master-addr", default="127.0.0.1", help="the machine of rank 0")
    option("master-port", type=int, default=29500, help="its port")
    option("local-addr", default=None, help="accepted")
    parser.add_argument("training_script", help="the script, or with -m a module, or with --no-python a program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line."""
    return get_args_parser().parse_args(args)


def _processes(text: str) -> int:
    """The number that `--nproc-per-node` names."""
    if text.lower() in ("cpu", "auto", "gpu"):
        from .. import cuda

        gpus = cuda.device_count() if cuda.is_available() else 0
        if text.lower() == "gpu" and not gpus:
            raise ValueError("--nproc-per-node=gpu: there is no GPU")
        return gpus if gpus and text.lower() != "cpu" else os.cpu_count() or 1
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {text}") from None


def command_of(args: argparse.Namespace) -> list[str]:
    """The command that each process runs: the script with rustgrad as `torch`, or the program itself."""
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
        return [args.training_script, *args.training_script_args]
    python = [os.environ.get("PYTHON_EXEC", sys.executable), "-u", "-m", "rustgrad"]
    return [*python, *(["-m"] if args.module else []), args.training_script, *args.training_script_args]


def job_of(args: argparse.Namespace, local_rank_argument: bool = False) -> Job:
    """What `launch` is to do."""
    least, _, most = str(args.nnodes).partition(":")
    nodes = int(most or least)
    host, port, rank = args.master_addr, int(args.master_port), args.node_rank
    if str(args.tee) != "0":
        raise ValueError("--tee is not supported. Use --redirects, which writes to files only.")
    if args.standalone:
        nodes, host, port, rank = 1, "localhost", 0, 0
    elif args.rdzv_endpoint:
        host, _, number = (
            args.rdzv_endpoint.rpartition(":") if ":" in args.rdzv_endpoint else (args.rdzv_endpoint, "", "")
        )
        port = int(number or 29400)
    if nodes == 1:
        rank = 0
    elif rank is None and args.rdzv_backend == "static":
        rank = 0  # torchrun's default
    conf = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    return Job(
        name=args.training_script,
        command=command_of(args),
        nodes=nodes,
        processes=_processes(str(args.nproc_per_node)),
        host=host,
        port=port,
        node_rank=rank,
        restarts=int(args.max_restarts),
        interval=float(args.monitor_interval),
        role=args.role,
        run_id=str(args.rdzv_id) if args.rdzv_id != "none" or not args.standalone else str(uuid.uuid4()),
        timeout=float(conf.get("join_timeout", conf.get("timeout", 600))),
        log_dir=args.log_dir,
        redirects=str(args.redirects),
        shown=[int(number) for number in args.local_ranks_filter.split(",") if number],
        local_rank_argument=local_rank_argument,
    )


def run(args: argparse.Namespace) -> None:
    """Starts the processes that options describe and waits for them.

    Raises:
        ChildFailedError: a process has failed, and so have the restarts.
    """
    launch(job_of(args))


def main(args: Sequence[str] | None = None) -> None:
    """`run` of a command line; it ends this process with 1 where a process has failed."""
    from .elastic.multiprocessing.errors import ChildFailedError

    try:
        run(parse_args(args))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except ValueError as error:
        sys.exit(f"rustgrad.distributed.run: {error}")


if __name__ == "__main__":
    main()
