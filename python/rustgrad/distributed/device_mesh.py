"""`rustgrad.distributed.device_mesh`: an arrangement of the processes of a world, of which there is one."""

from __future__ import annotations

from typing import Any

from .._absent import getattr_of
from .._base import Tensor, as_tensor, int32
from .._C import device
from .group import ProcessGroup, _checked, init_process_group, is_initialized, new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """This process in every dimension of a mesh; it makes the default process group where there is none.

    Args:
        device_type (str): the kind of device on which the processes work, without an index.
        mesh (Tensor or nested list): the ranks of the processes: zeros, of any number of dimensions of size 1.
        mesh_dim_names (tuple of str, optional): a name for each dimension.

    Raises:
        ValueError: a rank other than 0, or another number of names than of dimensions.
    """

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None) -> None:
        self.device_type = device(device_type).type
        self.mesh = as_tensor(mesh, dtype=int32, device="cpu")
        if self.mesh.numel() != 1 or self.mesh.item() != 0:
            raise ValueError(
                f"DeviceMesh: the world has one process; expected a mesh of the rank 0 alone, got {self.mesh.tolist()}."
            )
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.ndim:
            raise ValueError(
                f"DeviceMesh: expected a name for each of {self.mesh.ndim} dimensions, got {len(mesh_dim_names)}."
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if not is_initialized():
            init_process_group()
        self._groups: list[Any] = [new_group([0]) for _ in range(self.mesh.ndim)]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions, all 1."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes in a dimension, or in the mesh: 1."""
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
        """The group of the processes along a dimension, which a mesh of one dimension need not name."""
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions; expected `mesh_dim` to say which one."
                )
            mesh_dim = 0
        return self._groups[self._dimension(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of each dimension."""
        return list(self._groups)

    def get_rank(self) -> int:
        """0: the number of this process in the world."""
        return _checked(None).rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """0: the number of this process along a dimension."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> list[int]:
        """The place of this process: zeros."""
        return [0] * self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        for name in names:
            self._dimension(name)
        return DeviceMesh(self.device_type, self.mesh.reshape([1] * len(names)), mesh_dim_names=names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and (self.device_type, self.shape, self.mesh_dim_names) == (
            other.device_type,
            other.shape,
            other.mesh_dim_names,
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        sizes = (
            tuple(self.shape)
            if names is None
            else ", ".join(f"{n}={s}" for n, s in zip(names, self.shape, strict=True))
        )
        return (
            f"DeviceMesh({sizes if names is None else f'({sizes})'}, '{self.device_type}', stride={self.mesh.stride()})"
        )


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None
) -> DeviceMesh:
    """A mesh of this process with dimensions of size 1, and the process groups that go with it.

    Raises:
        RuntimeError: the device type has an index, or a name occurs twice.
        ValueError: a size other than 1, or another number of names than of sizes.
    """
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(f"Each mesh_dim_name must be unique; got {mesh_dim_names}.")
    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}.")
    if any(size != 1 for size in mesh_shape):
        raise ValueError(f"init_device_mesh: the world has one process; expected sizes of 1, got {tuple(mesh_shape)}.")
    ranks: Tensor = as_tensor(0, dtype=int32).reshape([1] * len(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
