"""`python -m rustgrad.distributed.launch`: the older name of `rustgrad.distributed.run`, which tells the script its LOCAL_RANK."""

from .run import main, parse_args, run
from .run import run as launch

__all__ = ["launch", "main", "parse_args", "run"]


def __dir__() -> list[str]:
    return __all__


if __name__ == "__main__":
    main()
