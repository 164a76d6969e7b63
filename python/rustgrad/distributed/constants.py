"""How long process groups wait by default."""

import datetime

from .group import default_pg_timeout as default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout: datetime.timedelta = datetime.timedelta(minutes=10)


def __dir__() -> list[str]:
    return __all__
