"""What mocked modules hold. This file is written into packages, so it imports nothing."""


def _refuse(method):
    def used(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in {method}"
        )

    return used


class MockedObject:
    """Stands for any object of a mocked module; each use of it is an error that names it."""

    _name = "?"

    def __new__(cls, *args, **kwargs):
        if not kwargs.get("_suppress_err"):
            raise NotImplementedError(
                f"Object '{cls._name}' was mocked out during packaging but it is being used in '__new__'. If this error "
                "is happening during 'load_pickle', please ensure that your pickled object doesn't contain any mocked "
                "objects."
            )
        return super().__new__(cls)

    def __init__(self, name, _suppress_err):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"


_UNARY = "abs bool bytes ceil complex copy deepcopy dir enter exit float floor getstate hash index int invert iter len neg pos reduce reversed round sizeof trunc"
_OTHER = "call contains delattr delitem eq ge getattr getitem gt instancecheck le lt setattr setitem subclasscheck"
_BINARY = "add and divmod floordiv lshift matmul mod mul or pow rshift sub truediv xor"
for _name in [*_UNARY.split(), *_OTHER.split(), *(p + n for n in _BINARY.split() for p in ("", "r", "i"))]:
    setattr(MockedObject, f"__{_name}__", _refuse(f"__{_name}__"))
