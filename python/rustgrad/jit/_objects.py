"""Classes that an archive declares: what they have is what their declaration says, and nothing else can be reached."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .._quantized._script_object import ScriptObject
from .._unpickler import CheckpointError
from ..nn.modules.module import Module

__all__ = ["RESERVED", "Object", "ScriptClass"]


# What a module keeps in its own attributes, apart from those that archives set; and the slots of objects.
RESERVED = frozenset(vars(Module())) - {"training", "_is_full_backward_hook"} | {"_class", "_unit", "_values"}


class ScriptClass:
    """A class of an archive's code.

    Attributes:
        name (str): its qualified name, `__torch__.Net`.
        kind (str): "Module", "NamedTuple", "Enum", "Interface", "C++" for a class of PyTorch's own, or "" for a plain class.
        fields (dict): name -> type of an attribute.
        constants (dict): name -> value of an attribute that is `Final`.
        methods (dict): name -> compiled function, which takes the object first.
        parameters, buffers (list): names of attributes.
        members (dict): name -> value of an enum's member.
        functions (dict): name -> what was read of a method: its text, parameters and types.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.fields: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.methods: dict[str, Callable[..., Any]] = {}
        self.functions: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.hooks: list[str] = []
        self.pre_hooks: list[str] = []
        self.members: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.source: Any = None
        self._made: Any = None

    @property
    def short(self) -> str:
        """The name without its path."""
        return self.name.rpartition(".")[2]

    def python_class(self) -> Any:
        """The named tuple or the enumeration that it is."""
        if self._made is None:
            try:
                self._make()
            except (ValueError, TypeError) as error:
                raise CheckpointError(f"the class {self.name} cannot be made: {error}") from None
        return self._made

    def _make(self) -> None:
        if self.kind == "Enum":
            self._made = enum.Enum(self.short, self.members)
            return
        names = list(self.fields)
        defaults = [self.defaults[n] for n in names if n in self.defaults]
        self._made = namedtuple(self.short, names, defaults=defaults)  # noqa: PYI024
        self._made._fields_of_script = frozenset(names)

    def free(self, name: str) -> None:
        """Refuses an attribute by a name that objects here have for something else."""
        if name.startswith("__") or name in RESERVED or self.kind in ("Enum", "NamedTuple") and name.startswith("_"):
            raise CheckpointError(f"the class {self.name} has an attribute {name[:100]!r}, which is no name for one")

    def new(self) -> Any:
        """An object without attributes."""
        return ScriptObject.__new__(ScriptObject) if self.kind == "C++" else Object(self)

    def has(self, value: Any) -> bool:
        """Whether a value is of this class."""
        if self.kind == "Interface":
            return True
        if self.kind in ("NamedTuple", "Enum"):
            return isinstance(value, self.python_class())
        if self.kind == "C++":
            return isinstance(value, ScriptObject) and self.name.endswith("." + value._held.qualified)
        return getattr(value, "_class", None) is self

    def named(self, value: tuple[Any, ...]) -> Any:
        """A tuple as this class of named ones."""
        if self.kind != "NamedTuple" or len(value) != len(self.fields):
            raise TypeError(f"Expected a value of type '{self.name}' but instead found type 'Tuple'")
        return value if isinstance(value, self.python_class()) else self.python_class()(*value)

    def copied(self, value: Any) -> Any:
        """An object of the program whose class has this name, as one of this class; None for another value."""
        if self.kind or isinstance(value, Object) or type(value).__name__ != self.short:
            return None
        if not all(hasattr(value, name) for name in self.fields):
            return None
        made = self.new()
        for name, kind in self.fields.items():
            setattr(made, name, kind.taken(getattr(value, name)))
        return made

    def member(self, value: enum.Enum) -> enum.Enum:
        """A member of an enumeration of the program as that of this one with its name and value."""
        found = self.python_class().__members__.get(value.name) if self.kind == "Enum" else None
        if found is None or found.value != value.value:
            raise TypeError(f"Expected a value of type '{self.name}' but instead found type '{type(value).__name__}'")
        return found


class Object:
    """An object of a plain class."""

    __slots__ = ("_class", "_values")

    def __init__(self, cls: ScriptClass) -> None:
        object.__setattr__(self, "_class", cls)
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name: str) -> Any:
        cls, values = self._class, self._values
        if name in values:
            return values[name]
        if name in cls.constants:
            return cls.constants[name]
        if name in cls.methods:
            method = cls.methods[name]
            return lambda *args, **kwargs: method(self, *args, **kwargs)
        raise AttributeError(f"'{cls.short}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._class.fields:
            raise AttributeError(f"'{self._class.short}' object has no attribute '{name}'")
        self._values[name] = value

    def __repr__(self) -> str:
        return f"<{self._class.name} object>"

    def __bool__(self) -> bool:
        return bool(_special("__bool__")(self)) if "__bool__" in self._class.methods else True

    def __eq__(self, other: object) -> Any:
        return _special("__eq__")(self, other)

    def __ne__(self, other: object) -> Any:
        return _special("__ne__")(self, other) if "__ne__" in self._class.methods else not self == other

    __hash__ = object.__hash__


def _special(name: str) -> Callable[..., Any]:
    """A special method that asks the class in the archive; without one there, an operator is that of the other operand."""

    def method(self: Object, *args: Any) -> Any:
        function = self._class.methods.get(name)
        if function is not None:
            return function(self, *args)
        if name in _OTHERS:
            raise TypeError(f"'{self._class.short}' object has no method {name}")
        return NotImplemented

    return method


_OTHERS = frozenset("__neg__ __len__ __contains__ __getitem__ __setitem__ __call__ __enter__ __exit__".split())
for _name in ("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge neg len contains getitem setitem "
              "call enter exit").split():  # fmt: skip
    setattr(Object, f"__{_name}__", _special(f"__{_name}__"))
