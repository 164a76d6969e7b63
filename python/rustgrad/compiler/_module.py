"""Compiled modules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..nn.modules.module import Module

__all__ = ["OptimizedModule"]

_OWN = ("_orig_mod", "_compile", "_call", "_compiled_state")


class OptimizedModule(Module):
    """A module whose calls run by plans. Parameters, buffers, submodules and attributes are those of the original one.

    Its `state_dict` has the keys of the original; `load_state_dict` also takes those that begin with "_orig_mod.".
    """

    def __init__(self, original: Module, compile: Callable[[Module], Any]) -> None:
        own = self.__dict__
        own["_orig_mod"] = original
        own["_compile"] = compile
        own["_call"] = compile(original)
        own["_compiled_state"] = own["_call"]._compiled_state
        for name, value in original.__dict__.items():
            if isinstance(value, (dict, set)) and name[0] == "_":
                own[name] = value  # the tables are shared, so names are those of the original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the original's forward, compiled."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            # Libraries unwrap a module of others and put what is left back.
            own = self.__dict__
            compile = own["_compile"]
            own.clear()
            OptimizedModule.__init__(self, value, compile)
        else:
            setattr(self.__dict__["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_orig_mod"], name)

    def __bool__(self) -> bool:
        return bool(self.__dict__["_orig_mod"])

    def __len__(self) -> int:
        return len(self.__dict__["_orig_mod"])

    @property
    def training(self) -> bool:
        """The mode of the original."""
        return self.__dict__["_orig_mod"].training

    def train(self, mode: bool = True) -> OptimizedModule:
        """Sets the mode of the original."""
        self.__dict__["_orig_mod"].train(mode)
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the original."""
        return self.__dict__["_orig_mod"].state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads the original's state, saved by either; as `Module.load_state_dict`."""
        prefix = "_orig_mod."
        plain = {k.removeprefix(prefix): v for k, v in state_dict.items()}
        return self.__dict__["_orig_mod"].load_state_dict(plain, strict, assign)

    def __repr__(self) -> str:
        lines = repr(self.__dict__["_orig_mod"]).replace("\n", "\n  ")
        return f"OptimizedModule(\n  (_orig_mod): {lines}\n)"

    def __deepcopy__(self, memo: dict) -> OptimizedModule:
        own = self.__dict__
        return OptimizedModule(copy.deepcopy(own["_orig_mod"], memo), own["_compile"])

    def __reduce__(self) -> Any:
        from . import compile

        return compile, (self.__dict__["_orig_mod"],)


def optimized(module: Module, compile: Callable[[Module], Any]) -> OptimizedModule:
    """The module compiled; of a compiled one, its original compiled anew."""
    return OptimizedModule(module.__dict__.get("_orig_mod", module), compile)
