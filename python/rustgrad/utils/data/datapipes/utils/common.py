"""What pipes share: checks of the functions they are given, names and streams of files, closing of streams."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any, ClassVar

from ...._import_utils import dill_available

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]

# The name in PyTorch, which libraries ask.
DILL_AVAILABLE = dill_available()
_EMPTY = inspect.Parameter.empty


def _name_of(function):
    inner = function.func if isinstance(function, functools.partial) else function
    return getattr(inner, "__name__", str(inner))


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Checks that a function takes as many positional arguments as there are columns.

    Args:
        fn (callable): one whose signature Python does not know passes.
        input_col (column, or list or tuple of columns).

    Raises:
        ValueError: it needs more, takes less, or needs keywords.
    """
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError:
        return
    required = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    keywords = sum(p.kind is p.KEYWORD_ONLY and p.default is _EMPTY for p in parameters)
    name = _name_of(fn)
    if keywords:
        raise ValueError(
            f"The function {name} takes {keywords} non-default keyword-only parameters, which is not allowed."
        )
    if len(parameters) < required and not any_number:
        raise ValueError(f"The function {name} takes {len(parameters)} parameters, but {required} are required.")
    lacks = any(p.default is _EMPTY for p in positional[required:])
    if lacks or (len(positional) < required and not any_number):
        raise ValueError(
            f"The function {name} takes {len(positional)} positional parameters, but {required} are required."
        )


def _check_unpickable_fn(fn: Callable[..., Any]) -> None:
    """TypeError: it is not callable. Warns of functions that `pickle` cannot send to workers, unless `dill` can."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    if DILL_AVAILABLE:
        return
    inner = fn.func if isinstance(fn, functools.partial) else fn
    kind = None
    if "<locals>" in getattr(inner, "__qualname__", type(inner).__qualname__):
        kind = "Local"
    elif getattr(inner, "__name__", "") == "<lambda>":
        kind = "Lambda"
    if kind is not None:
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or functools.partial "
            "instead.",
            stacklevel=3,
        )


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits a shell pattern, or one of several; no pattern fits all."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """The files of a directory whose names fit, or the file itself, in the order of their names.

    Args:
        recursive (bool): those of its directories too.
        abspath (bool): absolute paths.
        non_deterministic (bool): as the system lists them, which is faster.

    Raises:
        OSError: a directory cannot be listed.
    """

    def fail(error):
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=3)
        raise error

    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for path, directories, files in os.walk(root, onerror=fail):
        if not non_deterministic:
            files.sort()
            directories.sort()
        for file in files:
            if match_masks(file, masks):
                yield os.path.join(os.path.abspath(path) if abspath else path, file)
        if not recursive:
            return


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Pairs of a path and its opened file. TypeError: a path is no str."""
    if mode in ("b", "t"):
        mode = "r" + mode
    for pathname in pathnames if isinstance(pathnames, Iterable) else [pathnames]:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding))


def validate_pathname_binary_tuple(data: Any) -> None:
    """TypeError: it is no pair of a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            "binary stream within the tuple should have IOBase or its subclasses as type, "
            f"but it is type {type(data[1])}"
        )


class StreamWrapper:
    """An open file that is closed when nobody holds it any more.

    Args:
        file_obj: what is read; its attributes are the wrapper's.
        parent_stream (StreamWrapper, optional): what it is read from, an archive for instance, which
            stays open until `autoclose` was called and its children are closed.
        name (str, optional): shown.

    Raises:
        RuntimeError: the parent is no `StreamWrapper`.
    """

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: ClassVar[bool] = False

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None) -> None:
        if parent_stream is not None and not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
        self.file_obj = file_obj
        self.child_counter = 0
        self.parent_stream = parent_stream
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes the wrapped streams in a value: itself, or in lists, tuples and dicts up to ten levels deep."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (list, tuple, dict)) and depth <= 10:
            for value in v.values() if isinstance(v, dict) else v:
                cls.close_streams(value, depth + 1)

    def __getattr__(self, name: str) -> Any:
        if "file_obj" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Closes the file, and its parent where that waits for it."""
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        self.closed = True
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)
        if (parent := self.parent_stream) is not None:
            parent.child_counter -= 1
            if parent.child_counter == 0 and parent.close_on_last_child:
                parent.close()

    def autoclose(self) -> None:
        """Closes the file as soon as its children are closed."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __dir__(self) -> Iterable[str]:
        return sorted({*self.__dict__, *vars(StreamWrapper), *dir(self.file_obj)})

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __reduce__(self) -> Any:
        return StreamWrapper, (self.file_obj,)
