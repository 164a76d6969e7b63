"""`NamedMemberAccessor`: tensors and submodules of a module by dotted names, read, set, removed and exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..._base import Tensor
from ..modules.module import Module
from .stateless import _MISSING, _named_tensors, _owner, _swap

__all__: list[str] = []


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts a tensor into the place of a parameter, buffer or attribute of a module itself; returns what was there.

    Raises:
        AttributeError: nothing is there, unless `allow_missing`.
    """
    if "." in name or not name:
        raise KeyError(f"tensor name can't contain dots or be empty, got: {name!r}")
    if not allow_missing and not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return _swap(module, name, tensor)


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Puts a tensor into the place of a parameter, buffer or attribute of a module itself."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Puts a module into the place of a submodule; returns what was there."""
    if name not in module._modules:
        raise KeyError(f"{module._get_name()} has no submodule `{name}`")
    before = module._modules[name]
    if not isinstance(before, Module) or not isinstance(submodule, Module):
        raise TypeError(f"{name}: {before} and {submodule} must be instances of torch.nn.Module")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Tensors and submodules of `module` by dotted names."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __repr__(self) -> str:
        return f"{type(self).__name__}(module={self.module!r})"

    def _place(self, name: str) -> tuple[Module, str]:
        parent, _, last = name.rpartition(".")
        return self.get_submodule(parent), last

    def get_submodule(self, name: str) -> Module:
        """The submodule of a name; the module itself for an empty one."""
        return _owner(self.module, name)

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Exchanges a submodule; returns what was there."""
        owner, name = self._place(path)
        return swap_submodule(owner, name, value)

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of a name.

        Raises:
            AttributeError: there is none.
            TypeError: it is no tensor.
        """
        owner, last = self._place(name)
        if not hasattr(owner, last):
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        found = getattr(owner, last)
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Puts a tensor into the place of a name."""
        owner, last = self._place(name)
        set_tensor(owner, last, value)

    def del_tensor(self, name: str) -> None:
        """Removes the tensor of a name; AttributeError if there is none."""
        owner, last = self._place(name)
        if not hasattr(owner, last):
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        _swap(owner, last, _MISSING)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Exchanges a tensor; returns what was there."""
        owner, last = self._place(name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Puts tensors into the places of names."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Puts each tensor of a dict into the place of its name."""
        self.set_tensors(named_tensors, named_tensors.values())

    def del_tensors(self, names: Iterable[str]) -> None:
        """Removes the tensors of names."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Exchanges tensors; returns what was there."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Exchanges tensors; returns what was there by name, and the names at which nothing was.

        Raises:
            RuntimeError: nothing was at a name, unless `allow_missing`; nothing is exchanged then.
        """
        before: dict[str, Any] = {}
        missing: list[str] = []
        try:
            for name, value in named_tensors.items():
                before[name] = self.swap_tensor(name, value, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, sorted(missing)))}.")
        except Exception:
            for name, value in reversed(before.items()):
                self.swap_tensor(name, value, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """(names of tensors that `keys` lacks, keys that are no tensor's name)."""
        given, known = set(keys), set(_named_tensors(self.module))
        return sorted(known - given), sorted(given - known)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The names and parameters of the module."""
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The names and buffers of the module."""
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The names and parameters, then the names and buffers of the module."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The names and submodules of the module."""
        return self.module.named_modules(remove_duplicate=remove_duplicate)
