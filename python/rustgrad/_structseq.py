"""Result classes of ops that return several named tensors: tuples with attributes, `torch.return_types.max`."""


def make(name, fields):
    """A tuple subclass with one property for each field; its repr is PyTorch's."""

    def __repr__(self):
        parts = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{parts})"

    def __reduce__(self):
        return (_rebuild, (name, tuple(fields), tuple(self)))

    members = {"__repr__": __repr__, "__reduce__": __reduce__, "__slots__": (), "_fields": tuple(fields)}
    for i, field in enumerate(fields):
        members[field] = property(lambda self, i=i: self[i], doc=f"Item {i}.")
    return type(name, (tuple,), members)


def _rebuild(name, fields, values):
    return make(name, fields)(values)
