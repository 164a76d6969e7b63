"""`python -m rustgrad script.py [arguments]`: runs an unmodified PyTorch script with `torch` meaning rustgrad.

`import torch`, `import torch.nn as nn`, `from torch.utils.data import DataLoader` and so on give the
modules of rustgrad themselves, not copies. Only here does `cuda` stand for the GPU, whatever its vendor.
"""

import importlib
import importlib.abc
import importlib.machinery
import runpy
import sys

import rustgrad

_USAGE = "usage: python -m rustgrad script.py [arguments]\n       python -m rustgrad -m module [arguments]\n"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch` and `torch.x.y` as `rustgrad` and `rustgrad.x.y`."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch" and not name.startswith("torch."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        name = "rustgrad" + spec.name.removeprefix("torch")
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and name.startswith(error.name):
                raise ModuleNotFoundError(
                    f"No module named {spec.name!r}: rustgrad has no {name!r}", name=spec.name
                ) from None
            raise
        # The import system writes the new name into the module; both names must lead to one object.
        self._kept = (module, module.__spec__, module.__loader__, module.__name__)
        return module

    def exec_module(self, module):
        kept, module.__spec__, module.__loader__, module.__name__ = self._kept
        sys.modules["torch" + kept.__name__.removeprefix("rustgrad")] = kept


def install():
    """Makes `import torch` give rustgrad in this process, and `cuda` the GPU."""
    sys.modules["torch"] = rustgrad
    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    rustgrad._C._set_cuda_alias(True)
    importlib.import_module("rustgrad.cuda")._stands_for_gpu = True


def main(argv):
    """Runs the script or module that the arguments name."""
    if not argv or argv[0] in ("-h", "--help"):
        sys.stderr.write(_USAGE)
        return 0 if argv else 2
    install()
    if argv[0] == "-m":
        if len(argv) < 2:
            sys.stderr.write(_USAGE)
            return 2
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        runpy.run_path(argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
