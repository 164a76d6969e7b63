"""Private names of PyTorch's printing that libraries use for tensors of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _C
from ._absent import getattr_of
from ._settings import print_options, set_printoptions

__all__: list[str] = []


class _Options:
    """What `set_printoptions` has set, as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return print_options()[name]
        except KeyError:
            raise AttributeError(name) from None


PRINT_OPTS: Any = _Options()


def _tensor_str(self: _C.Tensor, indent: int) -> str:
    """The numbers of a tensor as they are printed, where further lines are indented by `indent`."""
    text = repr(self.detach())
    head = len("tensor(")
    end = text.rfind("]") + 1 or min(i for i in (text.find(","), len(text) - 1) if i > 0)
    return text[head:end].replace("\n" + " " * head, "\n" + " " * indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Text that is open, with what follows the numbers, broken before 80 columns, and the closing parenthesis."""
    lines, last = [tensor_str], len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last + len(suffix) + 2 > PRINT_OPTS.linewidth:
            lines.append(",\n" + " " * indent + suffix)
            last, force_newline = indent + len(suffix), False
        else:
            lines.append(", " + suffix)
            last += len(suffix) + 2
    return "".join([*lines, ")"])


def _str(self: _C.Tensor, *, tensor_contents: str | None = None) -> str:
    """A tensor as it is printed; with other text in the place of its numbers if given."""
    text = repr(self)
    if tensor_contents is None:
        return text
    return text.replace(_tensor_str(self, len("tensor(")), tensor_contents, 1)


def get_printoptions() -> dict[str, Any]:
    """What `set_printoptions` has set."""
    return dict(print_options())


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """`set_printoptions` for a block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        # None is a value of `sci_mode` alone, which it resets.
        set_printoptions(**before)


__getattr__ = getattr_of(__name__)
