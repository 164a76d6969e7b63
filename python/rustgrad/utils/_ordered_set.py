"""`OrderedSet`: a set that keeps the order in which elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from typing import Any, TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set whose elements are iterated in the order in which they were added; methods and operators are a set's."""

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._dict)})"

    def __getstate__(self) -> list[T]:
        return list(self._dict)

    def __setstate__(self, state: list[T]) -> None:
        self._dict = dict.fromkeys(state)

    def add(self, elem: T) -> None:
        """Adds an element."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Removes an element if it is there."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Removes all elements."""
        self._dict.clear()

    def pop(self) -> T:
        """Removes the last element and returns it; KeyError if there is none."""
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """Another set of the same elements."""
        return OrderedSet(self)

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements of this set, then those of others."""
        return OrderedSet([*self, *(x for other in others for x in other)])

    def update(self, *others: Iterable[T]) -> None:
        """Adds the elements of others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def intersection(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """The elements that all others have."""
        sets = [set(other) for other in others]
        return OrderedSet(x for x in self if all(x in other for other in sets))

    def difference(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """The elements that no other has."""
        gone = {x for other in others for x in other}
        return OrderedSet(x for x in self if x not in gone)

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """The elements that only one of the two has."""
        other = OrderedSet(other)
        return self.difference(other).union(other.difference(self))

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Keeps the elements that all others have."""
        self._dict = self.intersection(*others)._dict

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Removes the elements that another has."""
        self._dict = self.difference(*others)._dict

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Keeps the elements that only one of the two has."""
        self._dict = self.symmetric_difference(other)._dict

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether another has all elements."""
        return set(self) <= set(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether all elements of another are here."""
        return all(x in self for x in other)

    def __sub__(self, other: Any) -> OrderedSet[T]:
        return self.difference(other)

    def __and__(self, other: Any) -> OrderedSet[T]:
        return self.intersection(other)

    def __or__(self, other: Any) -> OrderedSet[Any]:
        return self.union(other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> OrderedSet[Any]:
        return self.symmetric_difference(other)
