"""`default_collate` and `default_convert` under the module name of PyTorch."""

from .._collate import default_collate as default_collate
from .._collate import default_convert as default_convert

__all__ = ["default_collate", "default_convert"]
