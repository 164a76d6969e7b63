"""`python -m rustgrad.distributed.launch`: `run`, which also gives each process `--local-rank=` unless `--use-env` is given."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .agent import launch
from .run import get_args_parser, job_of

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Starts the processes of a command line; it ends this process with 1 where one has failed."""
    from .elastic.multiprocessing.errors import ChildFailedError

    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="do not give --local-rank")
    given = parser.parse_args(args)
    try:
        launch(job_of(given, local_rank_argument=not given.use_env))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
