"""The names `torch`, `torch.x.y` and `functorch`, where a program has made `torch` mean rustgrad.

`sys.modules["torch"] = rustgrad`, or `python -m rustgrad`: the modules below it are then those of rustgrad, not second
copies that Python would load from the same files.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OWN = __package__
# Packages that PyTorch brings beside its own, and the modules in its extension module.
_BESIDE = {
    "functorch": f"{_OWN}._functorch_names",
    "functorch.compile": f"{_OWN}._functorch._compile_names",
    "functorch.experimental": f"{_OWN}._functorch._experimental_names",
    "functorch.experimental.control_flow": f"{_OWN}._functorch._control_flow_names",
}
IN_EXTENSION = {
    "_distributed_rpc": f"{_OWN}.distributed.rpc",
    "_functorch": f"{_OWN}._functorch_natives",
    "_nn": f"{_OWN}._nn_natives",
    "_profiler": f"{_OWN}.profiler._natives",
}


class _Finder:
    """Finds `torch.x.y` as `rustgrad.x.y`; anything else, and the real PyTorch, is left to others."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        parent, _, last = name.rpartition(".")
        if parent == f"{_OWN}._C" and last in IN_EXTENSION:
            return ModuleSpec(name, self)  # type: ignore[arg-type]
        if not name.startswith("torch.") and name not in _BESIDE:
            return None
        if sys.modules.get("torch") is not sys.modules[_OWN]:
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        parent, _, last = spec.name.rpartition(".")
        own = _OWN + spec.name.removeprefix("torch")
        name = _BESIDE.get(spec.name) or (IN_EXTENSION[last] if parent == f"{_OWN}._C" else own)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and name.startswith(error.name):
                text = f"No module named {spec.name!r}: rustgrad has no {name!r}"
                raise ModuleNotFoundError(text, name=spec.name) from None
            raise
        # The import system makes a module that it loads an attribute of its package: also where the package has a function
        # of that name, `quantize` of `ao.quantization.quantize`. What the package has loaded is loaded under its new name too.
        for loaded in [n for n in sys.modules if n.startswith(name + ".")]:
            sys.modules.setdefault("torch" + loaded.removeprefix(_OWN), sys.modules[loaded])
        # The import system writes the new name into the module, which keeps its own.
        spec.loader_state = (module.__spec__, module.__loader__, module.__name__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__, module.__loader__, module.__name__ = module.__spec__.loader_state


def install() -> None:
    """Adds the finder, which costs one comparison an import."""
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
