"""Options of `save` and `load` for the whole process: checksums, and how a file is mapped."""

from __future__ import annotations

from typing import Any

# `mmap.MAP_SHARED` and `mmap.MAP_PRIVATE`, wherever there are such flags.
MAP_SHARED, MAP_PRIVATE = 1, 2

_options = {"crc32": True, "mmap": MAP_PRIVATE, "skip": False}


def get_crc32_options() -> bool:
    """Whether `save` writes a checksum of each entry: True by default."""
    return _options["crc32"]


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether `save` writes a checksum of each entry; without one, unzip programs may refuse the file, `load` does not."""
    _options["crc32"] = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """The flags with which `load(mmap=True)` maps a file: `mmap.MAP_PRIVATE` by default."""
    return _options["mmap"]


class set_default_mmap_options:
    """Sets, as a function or for a `with` block, the flags with which `load(mmap=True)` maps a file.

    Args:
        flags (int): `mmap.MAP_PRIVATE`, or `mmap.MAP_SHARED`: writes to a tensor then reach the file, whose
            checksums no longer fit: read it with `mmap=True` again.

    Raises:
        ValueError: other flags.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before, _options["mmap"] = _options["mmap"], flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _options["mmap"] = self.before


class skip_data:
    """A context in which `save` writes no bytes of storages and `load` reads none.

    A file written in it has room for the bytes, which are zero until something else fills them. What is loaded in it has
    the shapes and dtypes of the file, and zeros.

    Args:
        materialize_fake_tensors (bool): without effect, as there are no fake tensors.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before, _options["skip"] = _options["skip"], True

    def __exit__(self, *exc: Any) -> None:
        _options["skip"] = self.before


def skips_data() -> bool:
    """Whether this is inside `skip_data`."""
    return _options["skip"]
