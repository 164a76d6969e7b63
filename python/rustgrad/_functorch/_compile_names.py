"""What `functorch.compile` means under `python -m rustgrad`."""

from __future__ import annotations

from .._absent import getattr_of
from . import config as config
from .aot_autograd import aot_function, aot_module, aot_module_simplified, make_boxed_compiler, make_boxed_func
from .compilers import nop, print_compile
from .partitioners import default_partition

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "default_partition",
    "make_boxed_compiler",
    "make_boxed_func",
    "nop",
    "print_compile",
]
compiled_function, compiled_module = aot_function, aot_module
__getattr__ = getattr_of(__name__)
