"""Names of the modules of packages: `<torch_package_0>.a.b` is `a.b` of one importer, and no module of the process."""

import itertools
import re

_counter = itertools.count()
_PREFIX = re.compile(r"<torch_package_\d+>")


class PackageMangler:
    """The prefix of one importer."""

    def __init__(self) -> None:
        self._parent = f"<torch_package_{next(_counter)}>"

    def parent_name(self) -> str:
        return self._parent

    def mangle(self, name: str) -> str:
        return f"{self._parent}.{name}"

    def demangle(self, name: str) -> str:
        """`name` without this importer's prefix; names of other importers stay."""
        return name.removeprefix(self._parent + ".")


def is_mangled(name: str) -> bool:
    """Whether a name has the prefix of some importer."""
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """`name` without the prefix of any importer."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """The prefix of a name, or the name if it has none."""
    return name.partition(".")[0] if is_mangled(name) else name
