"""The pipe of names of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe, no_length

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """The paths of the files in directories (functional name: ``list_files``).

    Args:
        root (str, sequence or pipe of str): directories, or files themselves.
        masks (str or list of str): patterns of names, as in a shell; one must fit.
        recursive (bool): files in directories of directories too.
        abspath (bool): absolute paths.
        non_deterministic (bool): as the system lists them; otherwise by name.
        length (int): what `len` returns, if it is not negative.

    Example:
        >>> list(FileLister(root=".", masks="*.toml"))
        ['./Cargo.toml', './pyproject.toml']
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe[str] = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots = [root] if isinstance(root, str) else root
        self.datapipe: IterDataPipe[str] = (
            roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        )
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            yield from get_file_pathnames_from_root(
                root, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length < 0:
            raise no_length(self)
        return self.length
