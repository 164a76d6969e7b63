"""Patterns of names of modules and files, and the tree of the files of a package."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Directory", "GlobGroup"]

GlobPattern = str | Iterable[str]


def _regex(pattern: str, separator: str) -> re.Pattern[str]:
    # Names are matched with a separator in front, so that "**" may stand for no part at all.
    mark, text = re.escape(separator), ""
    for part in pattern.split(separator):
        if part == "**":
            text += f"({mark}[^{mark}]+)*"
        elif "**" in part:
            raise ValueError("** can only appear as an entire path segment")
        else:
            text += mark + f"[^{mark}]*".join(map(re.escape, part.split("*")))
    return re.compile(text)


class GlobGroup:
    """Names that match some pattern of `include` and none of `exclude`.

    A name has parts, `a.b.c`. `*` matches within a part, and the part `**` any number of whole parts, none included:
    `torch.**` matches `torch` and `torch.nn.functional`.

    Args:
        include (str or list of str): the patterns.
        exclude (str or list of str): patterns of names that do not match.
        separator (str): between the parts.

    Raises:
        ValueError: `**` within a part.
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = ".") -> None:
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include, self.exclude = (
            [_regex(p, separator) for p in ([given] if isinstance(given, str) else given)]
            for given in (include, exclude)
        )

    def __repr__(self) -> str:
        return self._text

    def matches(self, candidate: str) -> bool:
        """Whether a name matches."""
        name = self.separator + candidate
        return any(p.fullmatch(name) for p in self.include) and not any(p.fullmatch(name) for p in self.exclude)


class Directory:
    """A folder or file of a package; `print` shows the tree. `children` are those of a folder, by name."""

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, path: str) -> None:
        *folders, name = path.split("/")
        home = self
        for folder in folders:
            home = home.children.setdefault(folder, Directory(folder, True))
        home.children[name] = Directory(name, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file or folder of this path."""
        first, _, rest = filename.partition("/")
        return first in self.children and (not rest or self.children[first].has_file(rest))

    def _lines(self, before: str, mark: str) -> list[str]:
        lines = [f"{before}{mark}{self.name}\n"]
        before += "│   " if mark == "├── " else "    "
        children = sorted(self.children.values(), key=lambda c: (not c.is_dir, c.name))
        for child in children:
            lines += child._lines(before, "└── " if child is children[-1] else "├── ")
        return lines

    def __str__(self) -> str:
        return "".join(self._lines("", "─── "))


def tree_of(name: str, files: Iterable[str], include: GlobPattern, exclude: GlobPattern) -> Directory:
    """The tree of those files whose paths match."""
    wanted = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(name, True)
    for file in files:
        if wanted.matches(file):
            top._add_file(file)
    return top
