"""The methods of `Size`: a tuple that stays a `Size` when it is sliced or added to."""

from ._C import Size


def _install_size():
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
    Size.numel = numel
    Size.__getitem__ = getitem
    Size.__add__ = lambda self, other: Size(tuple.__add__(self, tuple(other)))
    Size.__mul__ = Size.__rmul__ = lambda self, n: Size(tuple.__mul__(self, n))
    Size.__repr__ = lambda self: f"torch.Size({list(self)})"
    Size.__reduce__ = lambda self: (Size, (tuple(self),))
    Size.__module__ = "rustgrad"


_install_size()
