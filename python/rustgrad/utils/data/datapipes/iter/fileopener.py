"""The pipe that opens files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, get_file_binaries_from_pathnames
from .utils import no_length

__all__ = ["FileOpenerIterDataPipe"]


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[tuple[str, StreamWrapper]]):
    """Pairs of a path and its opened file (functional name: ``open_files``). Files close when nobody holds them.

    Args:
        datapipe (iterable of str): the paths.
        mode (str): "r", "rt" or "t" for text, "rb" or "b" for bytes.
        encoding (str, optional): of text.
        length (int): what `len` returns, if it is not negative.

    Raises:
        ValueError: another mode, or an encoding of bytes.

    Example:
        >>> [file.read() for path, file in FileLister(".", "*.txt").open_files("b")]
        [b'some text']
    """

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length < 0:
            raise no_length(self)
        return self.length
