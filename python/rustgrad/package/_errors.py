"""What is wrong with a package that cannot be written."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

from ._digraph import DiGraph

# Modules of Python's library that a package may use only where the program says so, since they reach far.
_DISALLOWED_MODULES = ["sys", "io"]


class PackagingErrorReason(Enum):
    """Why a module cannot be packaged."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern the mocked modules if "
        "objects are supposed to be in the package."
    )

    def __repr__(self) -> str:
        return f"<PackagingErrorReason.{self.name}>"


class EmptyMatchError(Exception):
    """A pattern with `allow_empty=False` matched no module."""


class PackagingError(Exception):
    """Modules that cannot be packaged: the message lists all by reason, `dependency_graph` has what needs them."""

    def __init__(self, dependency_graph: DiGraph, debug: bool = False) -> None:
        broken = defaultdict(list)
        for name, facts in dependency_graph.nodes.items():
            if "error" in facts:
                broken[facts["error"]].append(name)
        text = "\n"
        for reason, names in broken.items():
            text += f"* {reason.value}\n"
            for name in names:
                text += f"    {name}\n"
                context = dependency_graph.nodes[name].get("error_context")
                if context is not None:
                    text += f"      Context: {context}\n"
                if name in _DISALLOWED_MODULES:
                    text += (
                        f"      Note: `{name}` reaches far into the system, so it is no external module by default. "
                    )
                    text += f'If the package needs it, call PackageExporter.extern("{name}").\n'
                if debug:
                    text += f"      A path to {name}: {' -> '.join(dependency_graph.first_path(name))}\n"
        if not debug:
            text += "\nSet debug=True when invoking PackageExporter for a visualization of where broken modules are coming from!\n"
        self.dependency_graph = dependency_graph
        super().__init__(text)
