"""Writing packages: objects, resources, and the code that these need, by what the program says of each module.

The code is found by its text (`find_file_dependencies`), the modules of pickled objects by what the pickler names.
Nothing is written of modules until the package is closed, when all that is wrong with them is reported at once.
"""

from __future__ import annotations

import importlib.machinery
import io
import linecache
import os
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from .._file_reader import PyTorchFileWriter
from .._own import OWN
from ..utils.hooks import RemovableHandle
from ._digraph import DiGraph
from ._errors import _DISALLOWED_MODULES, EmptyMatchError, PackagingError, PackagingErrorReason
from ._mangling import demangle, is_mangled
from ._package_pickler import PackagePickler
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, OrderedImporter, sys_importer

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

_MOCK_IMPL = """\
from _mock import MockedObject
def __getattr__(attr: str):
    return MockedObject(__name__ + '.' + attr, _suppress_err=True)
"""


class _Action(Enum):
    INTERN = "interned"
    EXTERN = "external"
    MOCK = "mocked"
    DENY = "denied"
    # Modules of another package that importers and mocks bring themselves.
    SKIP = "skipped"
    MOCK_MODULE = "the module of mocks"


@dataclass
class _Rule:
    action: _Action
    allow_empty: bool
    matched: bool = False


Hook = Callable[["PackageExporter", str], None]


class PackageExporter:
    """Writes a package: a file of objects, resources and code, which `PackageImporter` reads.

    `intern` names modules whose code is written, `extern` those that the reader has, `mock` those that are replaced by
    what raises at each use, and `deny` those that may not be needed; patterns are `GlobGroup`'s, and the first that
    matches a module counts. Python's library (without `sys` and `io`) and `torch` are external by default.

    Args:
        f (path or binary file): where it is written; a file needs only `write`.
        importer (Importer or list of Importer): finds modules. Default: those of the process.
        debug (bool): errors tell how each module came to be needed.
    """

    def __init__(
        self,
        f: str | os.PathLike[str] | IO[bytes],
        importer: Importer | Sequence[Importer] = sys_importer,
        debug: bool = False,
    ) -> None:
        if not isinstance(importer, (Importer, Sequence)):
            raise TypeError(
                f"importer arg should be an Importer or a sequence of Importers, got {type(importer)} instead."
            )
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self.debug, self.dependency_graph = debug, DiGraph()
        self.patterns: dict[GlobGroup, _Rule] = {}
        self.zip_file = PyTorchFileWriter(f)
        self.zip_file.set_min_version(6)
        self._storages: dict[Any, str] = {}
        self._written_storages = 0
        self._reduced: dict[int, Any] = {}
        self._hooks: dict[_Action, OrderedDict[int, Hook]] = {
            a: OrderedDict() for a in (_Action.INTERN, _Action.EXTERN, _Action.MOCK)
        }
        self._unique_id = 0

    # --- what is said of modules ---------------------------------------------------------------------------------
    def _say(self, action: _Action, include: GlobPattern, exclude: GlobPattern, allow_empty: bool) -> None:
        self.patterns[GlobGroup(include, exclude=exclude)] = _Rule(action, allow_empty)

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules that match are written into the package if they are needed, with what they need."""
        self._say(_Action.INTERN, include, exclude, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules that match are replaced: whatever is read from them raises NotImplementedError where it is used."""
        self._say(_Action.MOCK, include, exclude, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Modules that match are imported by the reader from its process."""
        self._say(_Action.EXTERN, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """A need of a module that matches is an error."""
        self._say(_Action.DENY, include, exclude, True)

    def _register(self, action: _Action, hook: Hook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def register_intern_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(exporter, module_name)` is called for each interned module as the package is closed."""
        return self._register(_Action.INTERN, hook)

    def register_mock_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(exporter, module_name)` is called for each mocked module as the package is closed."""
        return self._register(_Action.MOCK, hook)

    def register_extern_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(exporter, module_name)` is called for each external module as the package is closed."""
        return self._register(_Action.EXTERN, hook)

    # --- code ----------------------------------------------------------------------------------------------------
    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """Adds the file of a module, or all Python files below a folder as the modules of a package."""
        path = Path(file_or_directory)
        if not path.is_dir():
            self.save_source_string(module_name, path.read_text("utf-8"), path.name == "__init__.py", dependencies)
            return
        sources = []
        for file in path.glob("**/*.py"):
            is_package = file.name == "__init__.py"
            parts = file.relative_to(path).with_suffix("").parts[: -1 if is_package else None]
            sources.append((".".join((module_name, *parts)), file.read_text("utf-8"), is_package))
        # All are known before the first is searched for what it needs, which may be another.
        for name, source, is_package in sources:
            self._intern(name, source, is_package)
        for name, source, is_package in sources:
            self.save_source_string(name, source, is_package, dependencies)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Adds a module by its source.

        Args:
            module_name (str): "a.b".
            src (str): Python code.
            is_package (bool): whether it may have submodules and resources.
            dependencies (bool): whether what it imports is added too.
        """
        self._intern(module_name, src, is_package)
        if dependencies:
            for needed in self._needed(src, module_name, is_package):
                self.dependency_graph.add_edge(module_name, needed)
                self.add_dependency(needed)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Adds the code of a module that can be imported, and, with `dependencies`, what it imports."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._intern_module(module_name, dependencies)

    def _intern(self, name: str, source: str, is_package: bool) -> None:
        self.dependency_graph.add_node(name, source=source, is_package=is_package, provided=True, action=_Action.INTERN)

    def _intern_module(self, module_name: str, dependencies: bool) -> None:
        module = self._import_module(module_name)
        name, is_package = demangle(module_name), hasattr(module, "__path__")
        file = getattr(module, "__file__", None)
        source = "".join(linecache.getlines(file, vars(module))) if str(file).endswith(".py") else None
        if source is not None:
            self.save_source_string(name, source, is_package, dependencies)
            return
        context = None
        if file is None:
            reason = PackagingErrorReason.NO_DUNDER_FILE
        elif file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            reason = PackagingErrorReason.IS_EXTENSION_MODULE
        else:
            reason, context = PackagingErrorReason.SOURCE_FILE_NOT_FOUND, f"filename: {file}"
        self.dependency_graph.add_node(
            name, action=_Action.INTERN, is_package=is_package, error=reason, error_context=context, provided=True
        )

    def _import_module(self, module_name: str) -> ModuleType:
        try:
            return self.importer.import_module(module_name)
        except ModuleNotFoundError:
            if not is_mangled(module_name):
                raise
            raise ModuleNotFoundError(
                f"Module not found: '{module_name}'. Make sure the PackageImporter that created this module is present in "
                "`self.importer`"
            ) from None

    def _exists(self, module_name: str) -> bool:
        if module_name in self.dependency_graph and "source" in self.dependency_graph.nodes[module_name]:
            return True
        try:
            self._import_module(module_name)
        except Exception:  # Whatever a module raises as it is loaded: it is not there for the package.
            return False
        return True

    def _needed(self, src: str, module_name: str, is_package: bool) -> list[str]:
        """The modules that a source imports: of `from a import b` the module `a.b` if there is one, else `a`."""
        package = module_name if is_package else module_name.rpartition(".")[0] or module_name
        try:
            pairs = find_files_source_depends_on(src, package)
        except Exception as error:
            reason = PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED
            self.dependency_graph.add_node(module_name, error=reason, error_context=str(error))
            return []
        found = {}
        for module, name in pairs:
            if name is not None and self._exists(f"{module}.{name}"):
                found[f"{module}.{name}"] = True
            elif self._exists(module):
                found[module] = True
        return list(found)

    def _rule_of(self, module_name: str) -> _Rule | None:
        """What was said of a module. None: nothing."""
        top = module_name.partition(".")[0]
        if top in ("torch", OWN) or (top in sys.stdlib_module_names and top not in _DISALLOWED_MODULES):
            return _Rule(_Action.EXTERN, True)
        return next((rule for pattern, rule in self.patterns.items() if pattern.matches(module_name)), None)

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Adds a module that the package needs, as `intern`, `extern`, `mock` and `deny` say."""
        graph = self.dependency_graph
        if module_name in graph and graph.nodes[module_name].get("provided"):
            return
        special = {"torch_package_importer": _Action.SKIP, "_mock": _Action.MOCK_MODULE}.get(module_name)
        rule = _Rule(special, True) if special else self._rule_of(module_name)
        if rule is None:
            graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)
            return
        rule.matched = True
        graph.add_node(module_name, action=rule.action, provided=True)
        if rule.action is _Action.DENY:
            graph.add_node(module_name, error=PackagingErrorReason.DENIED)
        elif rule.action is _Action.INTERN:
            self._intern_module(module_name, dependencies)

    # --- objects and resources -----------------------------------------------------------------------------------
    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True, pickle_protocol: int = 3
    ) -> None:
        """Adds an object.

        Args:
            package (str): the package that it is a resource of, "a.b".
            resource (str): its name there.
            obj: tensors, containers, modules and what else can be pickled.
            dependencies (bool): whether the modules of its classes are added too.
            pickle_protocol (int): 3 or 4.

        Raises:
            pickle.PicklingError: a class is not where the importer finds one of its name.
        """
        if pickle_protocol not in (3, 4):
            raise AssertionError(f"torch.package only supports pickle protocols 3 and 4, got {pickle_protocol}")
        data = io.BytesIO()
        pickler = PackagePickler(self, data, pickle_protocol)
        pickler.dump(obj)
        for storage, place in list(self._storages.items())[self._written_storages :]:
            self.zip_file.write_record(f".data/{place}.storage", storage.cpu(), storage.nbytes())
        self._written_storages = len(self._storages)
        node = f"<{package}.{resource}>"
        self.dependency_graph.add_node(node, action=_Action.INTERN, provided=True, is_pickle=True)
        for module, names in pickler.named.items() if dependencies else ():
            self.dependency_graph.add_edge(node, module)
            rule = self._rule_of(module)
            if rule is None or rule.action is not _Action.MOCK:
                self.add_dependency(module)
                continue
            rule.matched = True
            self.dependency_graph.add_node(
                module,
                action=_Action.MOCK,
                provided=True,
                error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                error_context=f"Object(s) '{names}' from module `{module}` was mocked out during packaging but is being used "
                f"in resource - `{resource}` in package `{package}`. ",
            )
        self._write(self._filename(package, resource), data.getvalue())

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Adds a text."""
        self.save_binary(package, resource, text.encode())

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Adds bytes."""
        self._write(self._filename(package, resource), binary)

    def _filename(self, package: str, resource: str) -> str:
        if os.path.basename(resource) != resource or not resource:
            raise ValueError(f"{resource!r} must be only a file name")
        return f"{package.replace('.', '/')}/{resource}"

    def get_unique_id(self) -> str:
        """A text that this exporter returns once."""
        self._unique_id += 1
        return str(self._unique_id - 1)

    # --- the file ------------------------------------------------------------------------------------------------
    def _write(self, name: str, data: bytes) -> None:
        if is_mangled(name):
            raise AssertionError(
                f"Tried to save a torch.package'd module as '{name}'. Directly saving torch.package'd modules is not allowed."
            )
        self.zip_file.write_record(name, data, len(data))

    def _write_module(self, name: str, source: str, is_package: bool) -> None:
        self._write(name.replace(".", "/") + ("/__init__.py" if is_package else ".py"), source.encode())

    def close(self) -> None:
        """Writes the modules and ends the file; leaving a `with` block does it.

        Raises:
            PackagingError: modules that are needed cannot be packaged.
            EmptyMatchError: a pattern with `allow_empty=False` matched nothing.
        """
        try:
            self._check()
            self._write_modules()
        finally:
            # The file is a valid archive also where that is all that there is.
            self.zip_file.write_end_of_file()

    def _check(self) -> None:
        if any("error" in facts for facts in self.dependency_graph.nodes.values()):
            raise PackagingError(self.dependency_graph, self.debug)
        for pattern, rule in self.patterns.items():
            if not rule.allow_empty and not rule.matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern}, which was marked as allow_empty=False"
                )

    def _write_modules(self) -> None:
        nodes, external = self.dependency_graph.nodes, []
        for name, facts in list(nodes.items()):
            action = facts["action"]
            for hook in list(self._hooks.get(action, {}).values()):
                hook(self, name)
            if action is _Action.EXTERN:
                external.append(name)
            elif action is _Action.INTERN and "is_pickle" not in facts:
                self._write_module(name, facts["source"], facts["is_package"])
            elif action is _Action.MOCK:
                self._write_module(name, _MOCK_IMPL, hasattr(self._import_module(name), "__path__"))
        if any(facts["action"] in (_Action.MOCK, _Action.MOCK_MODULE) for facts in nodes.values()):
            self._write_module("_mock", (Path(__file__).parent / "_mock.py").read_text("utf-8"), False)
        self._write(".data/extern_modules", ("\n".join(external) + "\n").encode())
        self._write(".data/python_version", platform.python_version().encode())

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.zip_file.write_end_of_file()

    # --- questions -----------------------------------------------------------------------------------------------
    def _with(self, action: _Action) -> list[str]:
        nodes = self.dependency_graph.nodes.items()
        return sorted(n for n, facts in nodes if facts.get("action") is action and "is_pickle" not in facts)

    def interned_modules(self) -> list[str]:
        """The names of the modules whose code is written."""
        return self._with(_Action.INTERN)

    def externed_modules(self) -> list[str]:
        """The names of the external modules."""
        return self._with(_Action.EXTERN)

    def mocked_modules(self) -> list[str]:
        """The names of the mocked modules."""
        return self._with(_Action.MOCK)

    def denied_modules(self) -> list[str]:
        """The names of the modules that are needed and denied."""
        return self._with(_Action.DENY)

    def dependency_graph_string(self) -> str:
        """What needs what, in the language of Graphviz."""
        return self.dependency_graph.to_dot()

    def get_rdeps(self, module_name: str) -> list[str]:
        """The modules that need a module."""
        return list(self.dependency_graph.predecessors(module_name)) if module_name in self.dependency_graph else []

    def all_paths(self, src: str, dst: str) -> str:
        """The paths by which one module needs another, in the language of Graphviz."""
        return self.dependency_graph.all_paths(src, dst)
