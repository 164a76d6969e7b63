"""What counts as a container for `_pytree`: tuples, lists, dictionaries, named tuples, deques, and registered classes.

A container is flattened into its children and a context, from which it can be rebuilt.
"""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .. import return_types
from .._base import Size


class SequenceKey(NamedTuple):
    """The step from a sequence to one of its items."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """The step from a mapping to one of its values."""

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The step from an object to one of its attributes."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: object) -> Any:
        """The attribute."""
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How a class is flattened and rebuilt."""

    type: object
    flatten_fn: object
    unflatten_fn: object
    flatten_with_keys_fn: object
    serialized_type_name: object = None
    to_dumpable_context: object = None
    from_dumpable_context: object = None


SUPPORTED_NODES = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes a class a container.

    Args:
        cls (type): the class; subclasses are not included.
        flatten_fn (callable): object -> (children, context).
        unflatten_fn (callable): (children, context) -> object.
        serialized_type_name (str): its name for `treespec_dumps`, which requires one.
        to_dumpable_context, from_dumpable_context (callable): conversion of the context to JSON values, and back.
        flatten_with_keys_fn (callable): object -> (list of (key, child), context), for paths.

    Raises:
        ValueError: the class is registered already, or only one function for contexts is given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )
    if serialized_type_name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _private_register_pytree_node(cls: Any, *args: Any, **kwargs: Any) -> None:
    """`register_pytree_node` that replaces what was registered, with a warning."""
    if SUPPORTED_NODES.pop(cls, None) is not None:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=2
        )
    register_pytree_node(cls, *args, **kwargs)


def register_dataclass(
    cls: type,
    *,
    field_names: Sequence[str] | None = None,
    drop_field_names: Sequence[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a container of its fields.

    Args:
        cls (type): the class. A class that is not a dataclass needs `field_names`.
        field_names (list of str): the fields that are children; by default all that `__init__` takes.
        drop_field_names (list of str): omitted fields; they get their defaults when the object is rebuilt.
        serialized_type_name (str): as in `register_pytree_node`.

    Raises:
        ValueError: `field_names` and `drop_field_names` together are not the dataclass's fields.
    """
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        names = field_names
    else:
        fields = {f.name for f in dataclasses.fields(cls) if f.init} - set(drop_field_names or ())
        names = [f.name for f in dataclasses.fields(cls) if f.name in fields] if field_names is None else field_names
        if set(names) != fields:
            raise ValueError(
                "field_names does not include all dataclass fields.\n"
                f"register_dataclass: expected {sorted(fields)} of {cls}, got {sorted(names)}. Hint: name those that are "
                "to be left out in drop_field_names."
            )

    def pairs(obj):
        return [(n, getattr(obj, n)) for n in names if getattr(obj, n) is not None]

    def absent(obj):
        return [n for n in names if getattr(obj, n) is None]

    def built(values, context):
        present, none = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(none))

    register_pytree_node(
        cls,
        lambda obj: ([v for _, v in pairs(obj)], [[n for n, _ in pairs(obj)], absent(obj)]),
        built,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=lambda obj: (
            [(GetAttrKey(n), v) for n, v in pairs(obj)],
            [[n for n, _ in pairs(obj)], absent(obj)],
        ),
    )


def register_constant(cls: type) -> None:
    """Makes objects of a class containers without children: they are part of the structure, compared by `==`.

    Raises:
        TypeError: the class compares by identity, or is not hashable.
    """
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        raise TypeError(
            f"register_constant: {cls} must define `__eq__` and `__hash__`, as its objects are compared by value"
        )
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj))


def is_namedtuple(obj: object) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: object) -> bool:
    """Whether it is a subclass of tuple with `_fields`, `_make` and `_asdict`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(isinstance(name, str) for name in cls._fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether it is a result with named parts, as `max` returns, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: object) -> bool:
    """Whether it is a subclass of tuple that counts its fields, as the classes of `return_types` do."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return isinstance(cls, type) and issubclass(cls, tuple) and all(type(getattr(cls, n, None)) is int for n in counts)


def is_structseq_instance(obj: object) -> bool:
    """Whether it is a result with named parts."""
    return is_structseq_class(type(obj))


def node_type(tree: object) -> Any:
    """What `tree` is registered as; its own class where that is a leaf."""
    cls = type(tree)
    # Subclasses of named tuples are containers; those of other containers are leaves.
    return namedtuple if cls not in SUPPORTED_NODES and is_namedtuple_class(cls) else cls


def _sequence_keys(values):
    return [(SequenceKey(i), v) for i, v in enumerate(values)]


def _mapping_keys(mapping):
    return [(MappingKey(k), v) for k, v in mapping.items()]


def _register(cls, children, context, build, keys, name=None, to_json=None, from_json=None):
    register_pytree_node(
        cls,
        lambda obj: (list(children(obj)), context(obj)),
        build,
        flatten_with_keys_fn=lambda obj: (keys(obj), context(obj)),
        serialized_type_name=name,
        to_dumpable_context=to_json,
        from_dumpable_context=from_json,
    )


def _sequence(cls, name):
    _register(cls, iter, lambda _: None, lambda values, _: cls(values), _sequence_keys, name)


def _defaultdict_to_json(context):
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_from_json(context):
    module = importlib.import_module(context["default_factory_module"])
    return [getattr(module, context["default_factory_name"]), context["dict_context"]]


def _namedtuple_to_json(cls):
    name = _NAMEDTUPLES.get(cls)
    if name is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a serialized_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return name


def _namedtuple_from_json(name):
    found = [cls for cls, known in _NAMEDTUPLES.items() if known == name]
    if not found:
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {name}: it is not registered.")
    return found[0]


def _register_namedtuple(cls, *, serialized_type_name):
    """Registers the name of a named tuple class for `treespec_dumps`."""
    _NAMEDTUPLES[cls] = serialized_type_name


_NAMEDTUPLES = {}
_sequence(tuple, "builtins.tuple")
_sequence(list, "builtins.list")
_sequence(Size, "torch.Size")
_register(dict, dict.values, list, lambda v, keys: dict(zip(keys, v, strict=True)), _mapping_keys, "builtins.dict")
_register(
    namedtuple,
    iter,
    type,
    lambda values, cls: cls._make(values),
    lambda t: [(GetAttrKey(name), value) for name, value in zip(t._fields, t, strict=True)],
    "collections.namedtuple",
    _namedtuple_to_json,
    _namedtuple_from_json,
)
_register(
    OrderedDict,
    OrderedDict.values,
    list,
    lambda values, keys: OrderedDict(zip(keys, values, strict=True)),
    _mapping_keys,
    "collections.OrderedDict",
)
_register(
    defaultdict,
    defaultdict.values,
    lambda d: [d.default_factory, list(d)],
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    _mapping_keys,
    "collections.defaultdict",
    _defaultdict_to_json,
    _defaultdict_from_json,
)
_register(
    deque,
    iter,
    lambda d: d.maxlen,
    lambda values, maxlen: deque(values, maxlen=maxlen),
    _sequence_keys,
    "collections.deque",
)
for _cls in return_types._classes():
    _register(_cls, iter, lambda _: None, lambda values, _, cls=_cls: cls(values), _sequence_keys)
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
