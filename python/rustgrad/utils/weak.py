"""Dictionaries whose keys are weak and compared by identity: tensors compare element by element, so `WeakKeyDictionary` fails."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from .._base import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is hashed by the identity of its object, and equals another to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __call__(self) -> Any:
        """The object, or None once it is gone."""
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, others = self(), other() if isinstance(other, weakref.ref) else None
        return self is other if mine is None or others is None else mine is others

    # The one of `weakref.ref` compares the objects.
    def __ne__(self, other: object) -> bool:
        return not self == other


class _WeakHashRef(weakref.ref):
    """A weak reference that keeps the hash of its object; live objects are compared as they are."""

    __slots__ = ("_hash",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._hash = hash(key)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        mine, others = self(), other() if isinstance(other, weakref.ref) else None
        return self is other if mine is None or others is None else mine == others


class TensorWeakRef:
    """A weak reference to a tensor."""

    ref: WeakIdRef

    def __init__(self, tensor: Tensor) -> None:
        assert isinstance(tensor, Tensor)
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Tensor | None:
        """The tensor, or None once it is gone."""
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary of objects by identity that lets its keys go.

    Args:
        dict (mapping, optional): its first items.
        ref_type (type): of the references; `WeakIdRef` by default.
    """

    def __init__(self, dict: Mapping[Any, Any] | Iterable[Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        me = weakref.ref(self)

        def remove(reference: Any) -> None:
            mine = me()
            if mine is not None:
                # A copy of the keys is iterated, so that removal never disturbs it.
                mine.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Adds the items of a mapping, or of a list of items: all of them, or none if it raises meanwhile."""
        if hasattr(other, "items"):
            items = list(other.items())
        elif hasattr(other, "keys"):
            items = [(key, other[key]) for key in other.keys()]
        else:
            items = list(other)
        for key, value in (*items, *kwargs.items()):
            self[key] = value

    def keyrefs(self) -> list[Any]:
        """The references to the keys, some of which may be gone when they are used."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Removes an item and returns it."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def copy(self) -> WeakIdKeyDictionary:
        """A dictionary with the same keys and values."""
        return type(self)(self, ref_type=self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> WeakIdKeyDictionary:
        new = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            new[key] = copy.deepcopy(value, memo)
        return new

    def __or__(self, other: Mapping[Any, Any]) -> WeakIdKeyDictionary:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: Mapping[Any, Any]) -> WeakIdKeyDictionary:
        if not isinstance(other, Mapping):
            return NotImplemented
        new = type(self)(other, ref_type=self.ref_type)
        new.update(self)
        return new

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


# By PyTorch's name for it.
WeakTensorKeyDictionary = WeakIdKeyDictionary


def __dir__() -> list[str]:
    return __all__
