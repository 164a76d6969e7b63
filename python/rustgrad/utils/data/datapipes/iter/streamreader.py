"""The pipe that reads opened files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """Pairs of a name and what its stream holds (functional name: ``read_from_stream``). Read streams are closed.

    Args:
        datapipe (IterDataPipe): pairs of a name and a stream.
        chunk (int, optional): bytes or characters of a sample; by default one sample holds the whole stream.

    Example:
        >>> list(IterableWrapper([("name", io.StringIO("abc"))]).read_from_stream(chunk=2))
        [('name', 'ab'), ('name', 'c')]
    """

    def __init__(self, datapipe: IterDataPipe[tuple[str, Any]], chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, stream in self.datapipe:
            while data := stream.read(self.chunk):
                yield name, data
            stream.close()
