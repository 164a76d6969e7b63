"""The pipe that decodes files by their names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler
from .utils import length_of

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """Pairs of a path and the decoded file (functional name: ``routed_decode``).

    The first handler that knows a file decodes it. PyTorch warns that this pipe will be removed, and so does it here.

    Args:
        datapipe (iterable): pairs of a path and a binary stream or bytes.
        *handlers (callable): of the file's key and its bytes; None means that it knows no such file.
        key_fn (callable): of the path, the key; by default the extension.

    Example:
        >>> list(RoutedDecoder([("a.json", b"[1, 2]")]))
        [('a.json', [1, 2])]
    """

    def __init__(
        self,
        datapipe: Iterable[tuple[str, Any]],
        *handlers: Callable[[str, Any], Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        warnings.warn(
            "`RoutedDecoderIterDataPipe()` and its functional API `.routed_decode()` are deprecated since 1.12 and will "
            "be removed in 1.13.\nSee https://github.com/pytorch/data/issues/163 for details.",
            FutureWarning,
            stacklevel=2,
        )
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[[str, Any], Any]) -> None:
        """Adds handlers before those that are there."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
