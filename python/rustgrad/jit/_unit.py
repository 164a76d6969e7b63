"""The classes and functions of an archive's code, found by their qualified names as they are needed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

from .._unpickler import CheckpointError
from ._contexts import AUTOCAST
from ._language import Function, fresh, literal, show_source
from ._objects import ScriptClass
from ._types import Type, type_of

__all__ = ["Unit"]

NEWEST = 10
# Classes of PyTorch's extension: packed weights. An archive holds their states.
_CPP = "__torch__.torch.classes."
_KINDS = {
    "Module": "Module",
    "NamedTuple": "NamedTuple",
    "Enum": "Enum",
    "ModuleInterface": "Interface",
    "Interface": "Interface",
}
_LISTS = {
    "__parameters__": "parameters", "__buffers__": "buffers", "__forward_hooks__": "hooks", "__forward_pre_hooks__": "pre_hooks",
    "__attributes__": "", "__constants__": "", "__overloads__": "",
}  # fmt: skip


class Unit:
    """The code of an archive.

    Args:
        files (dict): path under `code/` -> text.
        constants (tuple): the values of `CONSTANTS.c0` and so on.
        device (callable): the device for a text.
    """

    def __init__(
        self, files: dict[str, str], constants: tuple[Any, ...] = (), device: Callable[[str], Any] | None = None
    ) -> None:
        self.files, self.constants = files, constants
        # The version of the archive's ops: PyTorch's for new ones.
        self.version = NEWEST
        self.device: Callable[[str], Any] = device or _plain_device
        self.classes: dict[str, ScriptClass] = {}
        self.functions: dict[str, Function] = {}
        self._nodes: dict[str, dict[str, ast.AST]] = {}
        self._texts: dict[str, tuple[str, str]] = {}
        self._unchecked: list[Function] = []

    # --- by name
    def script_class(self, name: str) -> ScriptClass:
        """A class by its qualified name; CheckpointError where the archive has none."""
        if name.startswith(_CPP):
            return self.classes.setdefault(name, ScriptClass(name, "C++"))
        if name not in self.classes:
            node = self._node(name)
            if not isinstance(node, ast.ClassDef):
                raise CheckpointError(f"the archive has no class {name}")
            self._declare(name, node)
        return self.classes[name]

    def function(self, name: str) -> Function:
        """A function by its qualified name."""
        if name not in self.functions:
            node = self._node(name)
            if not isinstance(node, ast.FunctionDef):
                raise CheckpointError(f"the archive has no function {name}")
            self.functions[name] = self._function(name, node)
        return self.functions[name]

    def check(self) -> None:
        """Translates all that is known and all that this names."""
        while self._unchecked:
            self._unchecked.pop().check()

    def _node(self, name: str) -> ast.AST | None:
        module = name.rpartition(".")[0]
        if module not in self._nodes:
            path = module.replace(".", "/") + ".py"
            text = self.files.get(path)
            self._nodes[module] = {} if text is None else self._parse(module, path, text)
        return self._nodes[module].get(name.rpartition(".")[2])

    def _parse(self, module: str, path: str, text: str) -> dict[str, ast.AST]:
        where = fresh(f"code/{path}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text, where)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CheckpointError(f"the code of the archive cannot be read: code/{path}: {error}") from None
        show_source(self, where, text)
        self._texts[module] = where, text
        made: dict[str, ast.AST] = {}
        for node in tree.body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                raise SyntaxError(
                    f"code/{path}, line {node.lineno}: '{ast.unparse(node)[:100]}' is not part of TorchScript"
                )
            made[node.name] = node
        return made

    def _function(self, name: str, node: ast.FunctionDef, module: str | None = None) -> Function:
        where, text = self._texts[module or name.rpartition(".")[0]]
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        made = Function(self, node, where, "\n".join(line[node.col_offset :] for line in lines))
        self._unchecked.append(made)
        return made

    # --- classes
    def _declare(self, name: str, node: ast.ClassDef) -> None:
        bases = [ast.unparse(b) for b in node.bases]
        if len(bases) > 1 or bases and bases[0] not in _KINDS or node.keywords or node.decorator_list:
            raise SyntaxError(f"the class {name} derives from {bases}")
        made = self.classes[name] = ScriptClass(name, _KINDS[bases[0]] if bases else "")
        for part in node.body:
            self._member(made, part)
        if made.short == "autocast" and name.startswith("__torch__.torch."):
            made.methods |= AUTOCAST

    def _member(self, made: ScriptClass, part: ast.stmt) -> None:
        if isinstance(part, ast.FunctionDef):
            if made.kind != "Interface":
                function = self._function(made.name, part)
                made.functions[part.name] = made.methods[part.name] = function
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            self._field(made, part.target.id, part)
        elif isinstance(part, ast.Assign) and len(part.targets) == 1:
            self._assigned(made, part.targets[0], part.value)
        elif not isinstance(part, ast.Pass):
            raise SyntaxError(f"the class {made.name} has '{ast.unparse(part)[:100]}'")

    def _field(self, made: ScriptClass, name: str, part: ast.AnnAssign) -> None:
        made.free(name)
        made.fields[name] = type_of(part.annotation, self.type)
        if part.value is None:
            return
        if made.kind == "NamedTuple":
            made.defaults[name] = literal(part.value)
        else:
            made.constants[name] = _constant(part.value, made.fields[name])
            del made.fields[name]

    def _assigned(self, made: ScriptClass, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and target.id in _LISTS:
            if _LISTS[target.id]:
                getattr(made, _LISTS[target.id])[:] = literal(value)
        elif isinstance(target, ast.Name) and made.kind == "Enum":
            made.free(target.id)
            made.members[target.id] = literal(value)
        elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == "__annotations__":
            name = str(literal(target.slice))
            made.free(name)
            made.fields[name] = type_of(value, self.type)
        else:
            raise SyntaxError(f"the class {made.name} assigns {ast.unparse(target)[:100]}")

    # --- what names in code mean
    def type(self, name: str) -> Callable[[], ScriptClass]:
        """A class in an annotation: looked up when it is asked, since classes name each other."""
        return lambda: self.script_class(name)

    def value(self, path: list[str]) -> Any:
        """The value of `CONSTANTS.c0`, a function, or a member of an enumeration."""
        if path[0] == "CONSTANTS" and len(path) == 2 and path[1][:1] == "c" and path[1][1:].isdigit():
            place = int(path[1][1:])
            if place < len(self.constants):
                return self.constants[place]
            raise CheckpointError(f"the archive has no constant {place}")
        if isinstance(self._node(".".join(path)), ast.FunctionDef):
            return self.function(".".join(path))
        cls = self.script_class(".".join(path[:-1]))
        if cls.kind != "Enum" or path[-1] not in cls.members:
            raise CheckpointError(f"the archive has no value {'.'.join(path)}")
        return cls.python_class()[path[-1]]

    def maker(self, path: list[str]) -> Callable[..., Any]:
        """What makes an object of a class, which its `__init__` then gets."""
        name = ".".join(path)
        cls = self.script_class(name)
        if cls.kind:
            raise CheckpointError(f"{name} is a {cls.kind}, of which code makes no objects")
        return cls.new

    def callee(self, path: list[str]) -> Any:
        """A function, or the class of a named tuple."""
        name = ".".join(path)
        node = self._node(name)
        if isinstance(node, ast.ClassDef):
            cls = self.script_class(name)
            if cls.kind == "NamedTuple":
                return cls.python_class()
            if cls.kind:
                raise CheckpointError(f"{name} is a {cls.kind}, which code does not call")
            return lambda *args, **kwargs: _constructed(cls, args, kwargs)
        return self.function(name)


def _constructed(cls: ScriptClass, args: Any, kwargs: Any) -> Any:
    made = cls.new()
    cls.methods["__init__"](made, *args, **kwargs)
    return made


def _constant(node: ast.expr, kind: Type) -> Any:
    value = literal(node)
    return kind.taken(value) if kind.name in ("float", "complex") else value


def _plain_device(text: str) -> Any:
    from .._C import device

    return device(text)
