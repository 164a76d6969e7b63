"""The source lines of Python functions, as TorchScript's compiler would read them, and what code may name."""

from __future__ import annotations

import inspect
import keyword
import re
from typing import Any

__all__: list[str] = []


def is_identifier(name: str) -> bool:
    """Whether code can use a name as it is."""
    return name.isidentifier() and not keyword.iskeyword(name)


def get_source_lines_and_file(obj: Any, error_msg: str | None = None) -> tuple[list[str], int, str | None]:
    """(lines, number of the first line, file) of a function or class.

    Raises:
        OSError: the source is not to be found; the message ends with `error_msg`.
    """
    try:
        file = inspect.getsourcefile(obj)
        lines, first = inspect.getsourcelines(obj)
    except OSError as error:
        text = f"Can't get source for {obj}. TorchScript requires source access in order to carry out compilation, make sure original .py files are available."
        raise OSError(text if error_msg is None else f"{text}\n{error_msg}") from error
    return lines, first, file


def normalize_source_lines(sourcelines: list[str]) -> list[str]:
    """The lines of a function, each at least as far in as its `def`, where comments are not."""
    first = next((i for i, line in enumerate(sourcelines) if re.match(r"\s*def\b", line)), None)
    if first is None:
        return sourcelines
    indent = re.match(r"\s*", sourcelines[first])[0]  # type: ignore[index]
    return [
        *(indent + line.removeprefix(indent) for line in sourcelines[:first]),
        sourcelines[first],
        *(indent + line.removeprefix(indent) for line in sourcelines[first + 1 :]),
    ]
