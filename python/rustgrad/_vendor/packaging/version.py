"""Version numbers and their order, by PEP 440: `Version("2.1.0rc1+cpu") < Version("2.1")`."""

from __future__ import annotations

import functools
import re
from typing import Any

__all__ = ["VERSION_PATTERN", "InvalidVersion", "Version", "parse"]

VERSION_PATTERN = r"""
    v?
    (?:(?P<epoch>[0-9]+)!)?
    (?P<release>[0-9]+(?:\.[0-9]+)*)
    (?P<pre>[-_.]?(?P<pre_l>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>[0-9]+)?)?
    (?P<post>(?:-(?P<post_n1>[0-9]+))|(?:[-_.]?(?P<post_l>post|rev|r)[-_.]?(?P<post_n2>[0-9]+)?))?
    (?P<dev>[-_.]?(?P<dev_l>dev)[-_.]?(?P<dev_n>[0-9]+)?)?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?
"""
_PATTERN = re.compile(rf"\s*{VERSION_PATTERN}\s*", re.VERBOSE | re.IGNORECASE)
_LETTERS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


class InvalidVersion(ValueError):
    """Text that is no version number."""


def parse(version: str) -> Version:
    """The version of a text; InvalidVersion if it is none."""
    return Version(version)


@functools.total_ordering
class Version:
    """A version number.

    Raises:
        InvalidVersion: the text is none.
    """

    def __init__(self, version: str) -> None:
        match = _PATTERN.fullmatch(version)
        if match is None:
            raise InvalidVersion(f"Invalid version: '{version}'")
        part = match.group
        self.epoch = int(part("epoch") or 0)
        self.release = tuple(int(n) for n in part("release").split("."))
        letter = (part("pre_l") or "").lower()
        self.pre = (_LETTERS.get(letter, letter), int(part("pre_n") or 0)) if part("pre") else None
        self.post = int(part("post_n1") or part("post_n2") or 0) if part("post") else None
        self.dev = int(part("dev_n") or 0) if part("dev") else None
        local = part("local")
        self._local = tuple(int(p) if p.isdigit() else p.lower() for p in re.split(r"[-_.]", local)) if local else None

    @property
    def local(self) -> str | None:
        """What follows `+`."""
        return None if self._local is None else ".".join(map(str, self._local))

    @property
    def base_version(self) -> str:
        """Epoch and release alone."""
        return (f"{self.epoch}!" if self.epoch else "") + ".".join(map(str, self.release))

    @property
    def public(self) -> str:
        """All but the local part."""
        return str(self).partition("+")[0]

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before a release."""
        return self.dev is not None or self.pre is not None

    @property
    def is_postrelease(self) -> bool:
        """Whether it follows a release."""
        return self.post is not None

    @property
    def is_devrelease(self) -> bool:
        """Whether it is one of development."""
        return self.dev is not None

    def _number(self, place: int) -> int:
        return self.release[place] if len(self.release) > place else 0

    @property
    def major(self) -> int:
        """The first number of the release."""
        return self._number(0)

    @property
    def minor(self) -> int:
        """The second number of the release, or 0."""
        return self._number(1)

    @property
    def micro(self) -> int:
        """The third number of the release, or 0."""
        return self._number(2)

    def __str__(self) -> str:
        parts = [self.base_version]
        parts += ["".join(map(str, self.pre))] if self.pre is not None else []
        parts += [f".post{self.post}"] if self.post is not None else []
        parts += [f".dev{self.dev}"] if self.dev is not None else []
        return "".join(parts) + (f"+{self.local}" if self._local is not None else "")

    def __repr__(self) -> str:
        return f"<Version('{self}')>"

    @functools.cached_property
    def _key(self) -> Any:
        """What versions are compared by: development, then pre-releases, the release, then post-releases."""
        release = self.release
        while len(release) > 1 and release[-1] == 0:
            release = release[:-1]
        if self.pre is not None:
            pre: tuple[Any, ...] = (1, *self.pre)
        else:
            pre = (0,) if self.post is None and self.dev is not None else (2,)
        post = -1 if self.post is None else self.post
        dev = (1,) if self.dev is None else (0, self.dev)
        # Numbers follow words, and both follow the lack of a local part.
        local = (
            () if self._local is None else tuple((1, p, "") if isinstance(p, int) else (0, 0, p) for p in self._local)
        )
        return self.epoch, release, pre, post, dev, local

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return self._key < other._key if isinstance(other, Version) else NotImplemented
