"""Reading packages: their modules, which see nothing of the process but what the package lists, and their objects."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import inspect
import io
import linecache
import os
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from .. import _C
from .._file_reader import PyTorchFileReader
from .._pickled_names import counterpart
from .._safe_globals import torch_name
from .._unpickler import CheckpointError
from ..serialization import _is_swapped, _Reader, _swapped
from ._mangling import PackageMangler, demangle
from .glob_group import Directory, GlobPattern, tree_of
from .importer import Importer, attribute, import_here

__all__ = ["PackageImporter"]

# Tensors and graphs need these, and no import in the code of a package says so.
_ALWAYS = ("numpy", "numpy.core", "numpy.core._multiarray_umath", "builtins")
_loaded: weakref.WeakValueDictionary[str, ModuleType] = weakref.WeakValueDictionary()
_getfile = inspect.getfile


def _file_of(object: Any) -> str:
    """`inspect.getfile`, which looks for the module of a class in `sys.modules` alone."""
    module = _loaded.get(object.__module__) if inspect.isclass(object) else None
    return _getfile(object) if module is None else str(module.__file__)


inspect.getfile = _file_of


class _DirectoryReader:
    """The records of a package that was unpacked into a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def get_all_records(self) -> list[str]:
        return [p.relative_to(self._folder).as_posix() for p in self._folder.rglob("*") if p.is_file()]

    def has_record(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def get_record(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()


class _Node:
    """A name of a module in a package: of a file, of a folder (`children`), or of an external module."""

    def __init__(self, file: str | None = None, external: bool = False, folder: bool = False) -> None:
        self.file, self.external = file, external
        self.children: dict[str, _Node] | None = {} if folder else None


class _Unpickler(pickle.Unpickler):
    """Finds classes through an importer, and storages and reduced objects through `persistent_load`."""

    def __init__(self, file: IO[bytes], importer: PackageImporter, storages: _Reader) -> None:
        super().__init__(file)
        self.importer, self.storages = importer, storages
        self.reduced: dict[Any, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        where = torch_name(module)
        if (where, name) in self.storages.known:
            return self.storages.known[where, name]
        if where == "torch" or where.startswith("torch."):
            return counterpart(where, name)
        return attribute(self.importer.import_module(module), name)

    def persistent_load(self, saved: Any) -> Any:
        if not (isinstance(saved, tuple) and saved and saved[0] == "reduce_package"):
            return self.storages.persistent_load(saved)
        *key, function, arguments = saved[1:]
        if not key:
            return function(self.importer, *arguments)
        if key[0] not in self.reduced:
            self.reduced[key[0]] = function(self.importer, *arguments)
        return self.reduced[key[0]]


class PackageImporter(Importer):
    """Reads a package of `PackageExporter` or of PyTorch: a file, a binary file object or an unpacked folder.

    Its modules are in `modules`, under names of their own, and not in `sys.modules`. They may import each other and
    the external modules that the package lists. Loading runs the package's code: load only what you trust.

    Args:
        file_or_buffer (path, binary file or PyTorchFileReader): the package.
        module_allowed (function): name of an external module -> whether it may be used.

    Raises:
        ImportError: an external module is not allowed, or the files contradict each other.
        RuntimeError: the file is no archive.
    """

    def __init__(
        self,
        file_or_buffer: str | os.PathLike[str] | IO[bytes] | PyTorchFileReader,
        module_allowed: Callable[[str], bool] = lambda module_name: True,
    ) -> None:
        self.filename, self.zip_reader = _opened(file_or_buffer)
        self._mangler = PackageMangler()
        self._root = _Node(folder=True)
        self.extern_modules = self.zip_reader.get_record(".data/extern_modules").decode().splitlines()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' but that module has been disallowed"
                )
            *parents, last = name.split(".")
            home = self._folder(parents)
            if home.children is not None:
                home.children[last] = _Node(external=True)
        for path in self.zip_reader.get_all_records():
            self._add_file(path)
        self._builtins = {**vars(builtins), "__import__": self.__import__}
        # Code of a package may import the importer itself.
        self.modules: dict[str, Any] = {"torch_package_importer": self}
        self.last_map_location: Any = None

    def _folder(self, parts: list[str]) -> _Node:
        """The node of a folder, or the external one above it."""
        node = self._root
        for k, part in enumerate(parts):
            if node.children is None:
                raise ImportError(
                    f"inconsistent module structure. module {'.'.join(parts[:k])} is not a package, but has submodules"
                )
            node = node.children.setdefault(part, _Node(folder=True))
            if node.external:
                break
        return node

    def _add_file(self, path: str) -> None:
        *parents, last = path.split("/")
        if parents[:1] == [".data"]:
            return
        home = self._folder(parents)
        if home.external and last.endswith(".py"):
            raise ImportError(
                f"inconsistent module structure. package contains a module file {path} that is a subpackage of a module "
                "marked external."
            )
        if last == "__init__.py":
            home.file = path
        elif last.endswith(".py") and home.children is not None:
            home.children[last.removesuffix(".py")] = _Node(path)

    # --- modules -------------------------------------------------------------------------------------------------
    def import_module(self, name: str, package: Any = None) -> ModuleType:
        """The module of that name: of the package, loaded at its first use, or an external one that it lists.

        Raises:
            ModuleNotFoundError: it is neither.
        """
        name = self._mangler.demangle(name)
        if name in self.modules:
            return self.modules[name]
        parent = name.rpartition(".")[0]
        if parent:
            above = self.import_module(parent)
            if name in self.modules:  # the parent's code has loaded it
                return self.modules[name]
            if getattr(above, "__loader__", None) is self and not hasattr(above, "__path__"):
                raise ModuleNotFoundError(f"No module named {name!r}; {parent!r} is not a package", name=name)
        node = self._find(name)
        if not node.external:
            return self._loaded(name, node, parent)
        self.modules[name] = import_here(name)
        self._put_on(parent, name)
        return self.modules[name]

    def _put_on(self, parent: str, name: str) -> None:
        """Makes a module an attribute of its parent, where that is the package's."""
        if parent and getattr(self.modules[parent], "__loader__", None) is self:
            setattr(self.modules[parent], name.rpartition(".")[2], self.modules[name])

    def _find(self, name: str) -> _Node:
        node: _Node | None = self._root
        for part in name.split("."):
            node = (node.children or {}).get(part) if node else None
            if node is None or node.external:
                break
        if node is not None:
            return node
        if name in _ALWAYS:
            return _Node(external=True)
        raise ModuleNotFoundError(
            f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in the list '
            f"of allowed external modules: {self.extern_modules}",
            name=name,
        )

    def _loaded(self, name: str, node: _Node, parent: str) -> ModuleType:
        spec = importlib.machinery.ModuleSpec(
            name, self, origin="<package_importer>", is_package=node.children is not None  # type: ignore[arg-type]
        )  # fmt: skip
        module = importlib.util.module_from_spec(spec)
        module.__name__ = self._mangler.mangle(name)
        file = self._mangler.mangle(node.file) if node.file else None
        module.__dict__.update(__file__=file, __cached__=None, __builtins__=self._builtins, __torch_package__=True)
        self.modules[name] = _loaded[module.__name__] = module
        self._put_on(parent, name)
        if node.file and file:
            source = self.zip_reader.get_record(node.file).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            # For tracebacks and `inspect.getsource`.
            linecache.lazycache(file, module.__dict__)
            try:
                exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
            except BaseException:
                self.modules.pop(name, None)
                raise
        return module

    def create_module(self, spec: Any) -> None:
        """The import system's question; None: a plain module."""

    def exec_module(self, module: ModuleType) -> None:
        """The import system's request; modules are run as they are made."""

    def __import__(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        """What `import` in the package's code calls."""
        if level:
            package = (globals or {}).get("__package__") or ""
            name = importlib.util.resolve_name("." * level + name, package)
        module = self.import_module(name)
        if not fromlist:
            return self.import_module(name.partition(".")[0])
        if hasattr(module, "__path__"):
            wanted = [n for n in fromlist if n != "*"] + list(getattr(module, "__all__", ()) if "*" in fromlist else ())
            for part in wanted:
                if not hasattr(module, part):
                    try:
                        self.import_module(f"{name}.{part}")
                    except ModuleNotFoundError as error:
                        if error.name != f"{name}.{part}":
                            raise
        return module

    def get_source(self, module_name: str) -> str:
        """The source of a module of the package."""
        file = self.import_module(demangle(module_name)).__file__
        return self.zip_reader.get_record(demangle(str(file))).decode()

    # --- resources -----------------------------------------------------------------------------------------------
    def _path(self, package: str, resource: str) -> str:
        module = self.import_module(package)
        if module.__spec__ is None or module.__spec__.submodule_search_locations is None:
            raise TypeError(f"{package!r} is not a package")
        if os.path.basename(resource) != resource or not resource:
            raise ValueError(f"{resource!r} must be only a file name")
        return f"{demangle(module.__name__).replace('.', '/')}/{resource}"

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a resource of a package, `("a.b", "file")`."""
        return self.zip_reader.get_record(self._path(package, resource))

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text of a resource of a package."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """The object that `save_pickle` has written; its classes come from the package.

        Args:
            package, resource (str): as in `save_pickle`.
            map_location: the devices of tensors, as in `load`.
        """
        path = self._path(package, resource)
        order = ".data/byteorder" if self.zip_reader.has_record(".data/byteorder") else "byteorder"
        swapped = _is_swapped(self.zip_reader.get_record(order) if self.zip_reader.has_record(order) else None)

        def fetch(key: Any, nbytes: int, dtype: Any) -> _C.Tensor:
            data = self.zip_reader.get_record(f".data/{key}.storage")
            if len(data) < nbytes:
                raise CheckpointError(f"storage {key} has {len(data)} bytes, but {nbytes} are used")
            return _C._from_storage_bytes(_swapped(data, dtype) if swapped and dtype else data, dtype or _C.uint8)

        storages = _Reader(fetch, map_location)
        before, self.last_map_location = self.last_map_location, map_location
        try:
            return _Unpickler(io.BytesIO(self.zip_reader.get_record(path)), self, storages).load()
        finally:
            self.last_map_location = before

    def id(self) -> str:
        """The prefix of the names of this importer's modules, `<torch_package_0>`."""
        return self._mangler.parent_name()

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """The tree of the files whose paths match some pattern of `include` and none of `exclude`; see `GlobGroup`."""
        return tree_of(self.filename, self.zip_reader.get_all_records(), include, exclude)

    def python_version(self) -> str | None:
        """The version of Python that wrote the package, or None if it does not say."""
        path = ".data/python_version"
        return self.zip_reader.get_record(path).decode().strip() if self.zip_reader.has_record(path) else None


def _opened(given: Any) -> tuple[str, Any]:
    """The name and the records of what an importer is given."""
    if isinstance(given, PyTorchFileReader):
        return "<pytorch_file_reader>", given
    if not isinstance(given, (str, os.PathLike)):
        return "<binary>", PyTorchFileReader(given)
    path = os.fspath(given)
    return path, _DirectoryReader(path) if os.path.isdir(path) else PyTorchFileReader(path)
