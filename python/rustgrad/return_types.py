"""Result classes of ops that return several named tensors: tuples with attributes, `torch.return_types.max`.

There is one for each such op, made on first use; they are attributes of this module, where pickles find them.
"""

from . import _C

__all__ = []


def _make(name, fields):
    """A tuple subclass with one property for each field; its repr is PyTorch's. The same one each time."""
    if name in globals():
        return globals()[name]

    def __repr__(self):
        parts = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{parts})"

    def __reduce__(self):
        return (type(self), (tuple(self),))

    members = {"__repr__": __repr__, "__reduce__": __reduce__, "__slots__": (), "_fields": tuple(fields)}
    members |= {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
    members |= {"__module__": __name__, "__doc__": f"The results of `{name}`: {', '.join(fields)}."}
    for i, field in enumerate(fields):
        members[field] = property(lambda self, i=i: self[i], doc=f"Item {i}.")
    globals()[name] = made = type(name, (tuple,), members)
    return made


def _restored(name):
    """What PyTorch's pickles call as the class of this name: they give it attributes that are no items too, an empty dict."""
    cls = __getattr__(name)
    return lambda items, attributes=None: cls(items)


def _classes():
    """All of them."""
    for name, fields in _C._result_names().items():
        _make(name, fields)
    return [value for value in globals().values() if isinstance(value, type)]


def __getattr__(name):
    # A call with `out=` has a class of its own.
    fields = _C._result_names().get(name.removesuffix("_out"))
    if fields is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _make(name, fields)


def __dir__():
    return sorted({*globals(), *_C._result_names()})
