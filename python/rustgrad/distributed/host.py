"""Tensors as flat memory that collectives read and write, and the checks of arguments that collectives share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._C import Tensor
from ..autograd.grad_mode import no_grad
from .group import _checked

__all__ = ["Host", "group_rank", "tensor_of", "tensors_of"]


class Host:
    """A dense tensor as flat memory of the CPU: its own where it is contiguous, else a copy that `back` returns to it."""

    __slots__ = ("flat", "target")

    def __init__(self, tensor: Tensor) -> None:
        with no_grad():
            plain = tensor.detach()
            if plain.is_sparse:
                raise RuntimeError(
                    "collectives: sparse tensors are not supported; expected a dense one. Use to_dense()."
                )
            own = plain.is_cpu and plain.is_contiguous() and not plain.is_conj() and not plain.is_neg()
            self.target = None if own else plain
            self.flat = (plain if own else plain.cpu().resolve_conj().resolve_neg().contiguous()).view(-1)
            if not own and self.flat.data_ptr() == plain.data_ptr():
                self.flat = self.flat.clone()

    def back(self) -> None:
        """Writes the values to the tensor where the memory is a copy."""
        if self.target is not None:
            self.target.copy_(self.flat.view(self.target.shape))

    def fill(self, flat: Tensor) -> None:
        """Replaces the values."""
        if flat.data_ptr() != self.flat.data_ptr():
            self.flat.copy_(flat)


def tensor_of(value: Any, name: str) -> Tensor:
    """A tensor that an argument is; TypeError otherwise."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    return value


def tensors_of(values: Any, name: str) -> Sequence[Tensor]:
    """Tensors that an argument is a list of; TypeError otherwise."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, Tensor) for value in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    return values


def same_dtype(*tensors: Tensor) -> None:
    """ValueError for tensors of several element types."""
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} and {tensor.dtype}"
            )


def group_rank(group: Any, rank: int | None, in_group: int | None, name: str, default: int | None = None) -> int:
    """The number in a group of a process that `src` or `group_src` (or dst) names.

    Raises:
        ValueError: both or none are given, or it is not in the group.
    """
    pg = _checked(group)
    if in_group is not None:
        if rank is not None:
            raise ValueError(f"Can't specify both group_{name} and {name}")
        if not 0 <= in_group < pg.size():
            raise ValueError(f"Group rank {in_group} is not part of group of {pg.size()} processes")
        return in_group
    if rank is None:
        if default is None:
            raise ValueError(f"Must specify {name} or group_{name}")
        return default
    if rank not in pg.ranks:
        raise ValueError(f"Global rank {rank} is not part of group {pg}: its ranks are {pg.ranks}")
    return pg.ranks.index(rank)
