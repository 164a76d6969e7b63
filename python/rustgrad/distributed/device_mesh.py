"""`rustgrad.distributed.device_mesh`: the processes of a world as a grid, with a process group along each dimension."""

from __future__ import annotations

import math
import os
from typing import Any

from .._absent import getattr_of
from .._base import Tensor, arange, as_tensor, int32
from .._C import device
from .group import ProcessGroup, _checked, get_process_group_ranks, init_process_group, is_initialized, new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


def _line_groups(mesh: Tensor, dim: int) -> ProcessGroup | None:
    """The group of this process along a dimension; all processes make the groups of all lines."""
    world, own = _checked(None), None
    if mesh.ndim == 1 and mesh.numel() == world.size():
        return world
    for line in mesh.movedim(dim, -1).reshape(-1, mesh.shape[dim]).tolist():
        made = new_group(line, group_desc=f"mesh_dim_{dim}")
        if world.rank() in line:
            own = made
    return own


class DeviceMesh:
    """Processes in a grid. It makes the default process group, from the environment, where there is none.

    Args:
        device_type (str): the kind of device on which the processes work, without an index.
        mesh (Tensor or nested list): the ranks of the processes, of any number of dimensions.
        mesh_dim_names (tuple of str, optional): a name for each dimension.

    Raises:
        RuntimeError: more ranks than processes. ValueError: another number of names than of dimensions.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _groups: list[Any] | None = None,
    ) -> None:
        self.device_type = device(device_type).type
        self.mesh = as_tensor(mesh, dtype=int32, device="cpu")
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.ndim:
            raise ValueError(
                f"DeviceMesh: expected a name for each of {self.mesh.ndim} dimensions, got {len(mesh_dim_names)}."
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        _world_of(self.mesh.numel())
        self._groups: list[Any] = _groups or []
        if _init_backend and not self._groups:
            self._groups = [_line_groups(self.mesh, dim) for dim in range(self.mesh.ndim)]

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A mesh of groups that are there: one, or one for each dimension of `mesh`.

        Raises:
            ValueError: `mesh` is missing or does not fit.
        """
        groups = group if isinstance(group, list) else [group]
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if not isinstance(group, list):
            ranks = get_process_group_ranks(group)
            if mesh is not None and as_tensor(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {as_tensor(mesh).tolist()} for ProcessGroup with ranks {ranks}")
            mesh = ranks
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        grid = as_tensor(mesh, dtype=int32)
        if grid.ndim != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {grid.tolist()} and {len(groups)} "
                "ProcessGroups"
            )
        return DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names, _groups=list(groups))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes in a dimension, or in the mesh."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.size(mesh_dim)

    def _dimension(self, mesh_dim: int | str) -> int:
        names = self.mesh_dim_names or ()
        if isinstance(mesh_dim, str):
            if mesh_dim not in names:
                raise KeyError(f"DeviceMesh: there is no dimension {mesh_dim!r}; expected one of {names}.")
            return names.index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"DeviceMesh: dimension {mesh_dim} is out of range for {self.ndim} dimensions.")
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along a dimension, which a mesh of one dimension need not name."""
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                    "when device_mesh.ndim > 1."
                )
            mesh_dim = 0
        return self._groups[self._dimension(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of this process along each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """The number of this process in the world."""
        return _checked(None).rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The number of this process along a dimension."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process in the grid; None where it is not in it."""
        places = (self.mesh == self.get_rank()).nonzero()
        return tuple(places[0].tolist()) if len(places) else None

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along some dimensions that holds this process; its groups are those of the mesh."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dimension(name) for name in names]
        if dims != sorted(dims):
            raise KeyError(f"DeviceMesh: {names} are not in the order of {self.mesh_dim_names}.")
        here = self.get_coordinate() or (0,) * self.ndim
        part = self.mesh
        for dim in reversed(range(self.ndim)):
            if dim not in dims:
                part = part.select(dim, here[dim])
        return DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=[self._groups[dim] for dim in dims])

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The processes of this mesh along one dimension. All processes of the world call it, each for its part."""
        ranks = self.mesh.flatten()
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flat",))
        world = _checked(None)
        own = world
        if ranks.numel() != world.size():
            own = new_group(ranks.tolist(), use_local_synchronization=True)
        return DeviceMesh(self.device_type, ranks, mesh_dim_names=(name,), _groups=[own])

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, DeviceMesh) and self._key() == other._key()

    def _key(self):
        return self.device_type, self.shape, tuple(self.mesh.flatten().tolist()), self.mesh_dim_names

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        sizes = str(self.shape)
        if names is not None:
            sizes = f"({', '.join(f'{n}={s}' for n, s in zip(names, self.shape, strict=True))})"
        return f"DeviceMesh({sizes}, '{self.device_type}', stride={self.mesh.stride()})"


def _world_of(count: int) -> None:
    """The default group, which is made where there is none; RuntimeError where it has fewer processes."""
    if not is_initialized():
        alone = "RANK" not in os.environ and count == 1
        init_process_group(world_size=1 if alone else -1, rank=0 if alone else -1)
    if count > _checked(None).size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {_checked(None).size()}, but found {count} ranks!"
        )


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """The processes of the world, in the order of their ranks, as a grid, and the process groups that go with it.

    Raises:
        RuntimeError: the device type has an index, a name occurs twice, another number of names than of sizes, or more
            places than processes.
    """
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(f"Each mesh_dim_name must be unique; got {mesh_dim_names}.")
    if mesh_dim_names is not None and len(mesh_shape) != len(mesh_dim_names):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! Found {len(mesh_shape)} and {len(mesh_dim_names)}."
        )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. If you maintained a 'torch.device' object, "
            "it's recommended to pass in 'device.type'."
        )
    ranks = arange(math.prod(mesh_shape), dtype=int32).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
