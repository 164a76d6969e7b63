"""`default_pg_timeout`: how long a collective may take."""

from .group import default_pg_timeout as default_pg_timeout

__all__ = ["default_pg_timeout"]
