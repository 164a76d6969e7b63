"""The methods of `Size`: a tuple that stays a `Size` when it is sliced or added to."""

import math
import operator

from ._C import Size


def row_major(sizes):
    """The strides of a contiguous tensor."""
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


def _whole(item):
    """An int, the size of a ragged dimension, which is no number, or an int that knows how it is computed."""
    is_own = type(item) is int or hasattr(item, "is_ragged") or hasattr(item, "expr")
    return item if is_own else operator.index(item)


def _install_size():
    def new(cls, iterable=()):
        items = tuple(iterable)
        for i, item in enumerate(items):
            if not hasattr(item, "__index__"):
                kind = type(item).__name__
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{kind}')")
        return tuple.__new__(cls, map(_whole, items))

    def numel(self):
        """The number of elements of a tensor of this size."""
        n = 1
        for d in self:
            n *= d
        return n

    def getitem(self, index):
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    Size.__doc__ = "The sizes of a tensor: a tuple of ints that knows `numel()`."
    Size.__new__ = new
    Size.numel = numel
    Size.__getitem__ = getitem
    Size.__add__ = lambda self, other: Size(tuple.__add__(self, tuple(other)))
    Size.__mul__ = Size.__rmul__ = lambda self, n: Size(tuple.__mul__(self, n))
    Size.__repr__ = lambda self: f"torch.Size({list(self)})"
    Size.__reduce__ = lambda self: (Size, (tuple(self),))
    Size.__module__ = "rustgrad"


_install_size()
