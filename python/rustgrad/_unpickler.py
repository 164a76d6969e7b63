"""An unpickler for checkpoints that can build only what checkpoints hold.

A pickle is a program for a stack machine. Python's own machine calls anything the program names; this one supports the
instructions that data needs, calls only what it was given by name, and sets attributes only of instances, never
of a class or a function. Every fault of a program is a `CheckpointError`.
"""

from __future__ import annotations

import codecs
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

__all__ = ["CheckpointError", "Skimmer", "Unpickler", "names_in"]

# Hashing a tuple recurses without a bound: deeper nesting is rejected.
DEPTH = 1000
# Bytes read at once: a wrong length allocates no more memory than the file has bytes.
_PIECE = 1 << 20


class CheckpointError(pickle.UnpicklingError, RuntimeError):
    """A file that is no checkpoint, is damaged, or names what may not be called."""

    __module__ = "rustgrad.serialization"


class Unpickler:
    """Reads one pickle from a binary file.

    Args:
        file: has `read` and `readline`; afterwards positioned after the pickle's last byte.
        find (function): (module, name) -> the value of that name, or raises CheckpointError.
        calls (dict): what may be called -> None, or a function of the arguments that is called instead.
        instances (function): a class -> whether its instances may be created without `__init__` and given their state.
        persistent (function): a persistent id -> its value.
        encoding (str): of strings that Python 2 wrote; "bytes" keeps them as bytes.
    """

    def __init__(
        self,
        file: BinaryIO,
        find: Callable[[str, str], Any],
        calls: dict[Any, Callable[..., Any] | None],
        instances: Callable[[type], bool] | None,
        persistent: Callable[[Any], Any],
        encoding: str = "ASCII",
    ) -> None:
        self.file, self.find, self.calls, self.instances = file, find, calls, instances
        self.persistent, self.encoding = persistent, encoding
        self.stack, self.marks, self.memo, self.depths = [], [], {}, {}
        self.push, self.read = self.stack.append, file.read
        # The length of the stack at the last mark: what lies below it cannot be taken.
        self.floor = 0

    def load(self) -> Any:
        """The value of the pickle.

        Raises:
            CheckpointError: the pickle is cut short, malformed, or uses what it may not.
        """
        try:
            instructions, read = _INSTRUCTIONS, self.read
            while (code := read(1)) != b".":
                instruction = instructions.get(code)
                if instruction is None:
                    raise _unknown(code)
                instruction(self)
            return self.pop()
        except CheckpointError:
            raise
        except MemoryError:
            raise CheckpointError("the pickle asks for more memory than there is") from None
        except RuntimeError as error:
            raise CheckpointError(str(error)) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error) as error:
            raise CheckpointError(f"the pickle is malformed ({type(error).__name__}: {error})") from error

    # --- bytes ---
    def take(self, count: int) -> bytes:
        data = self.read(count if count <= _PIECE else _PIECE)
        while len(data) < count:
            more = self.read(min(count - len(data), _PIECE))
            if not more:
                raise CheckpointError("the pickle is cut short")
            data += more
        return data

    def byte(self) -> int:
        data = self.read(1)
        if not data:
            raise CheckpointError("the pickle is cut short")
        return data[0]

    def number(self, form: struct.Struct) -> Any:
        data = self.read(form.size)
        if len(data) < form.size:
            data += self.take(form.size - len(data))
        return form.unpack(data)[0]

    def counted(self, form: struct.Struct) -> bytes:
        """Bytes behind their length; a false length reads no more than the file holds."""
        return self.take(self.number(form))

    def line(self) -> bytes:
        text = self.file.readline()
        if not text.endswith(b"\n"):
            raise CheckpointError("the pickle is cut short")
        return text[:-1]

    # --- stack ---
    def has_top(self) -> bool:
        return len(self.stack) > self.floor

    def top(self) -> Any:
        if len(self.stack) <= self.floor:
            raise CheckpointError("the pickle takes a value that it has not made")
        return self.stack[-1]

    def pop(self) -> Any:
        if len(self.stack) <= self.floor:
            raise CheckpointError("the pickle takes a value that it has not made")
        return self.stack.pop()

    def mark(self) -> None:
        self.marks.append(self.floor)
        self.floor = len(self.stack)

    def marked(self) -> list[Any]:
        """The values above the last mark."""
        if not self.marks:
            raise CheckpointError("the pickle takes a mark that it has not set")
        values = self.stack[self.floor :]
        del self.stack[self.floor :]
        self.floor = self.marks.pop()
        return values

    def nested(self, made: Any, parts: Iterable[Any]) -> Any:
        """`made`, once it is known not to be nested too deeply; what has a depth is kept, so that no id is used twice."""
        depth, depths = 1, self.depths
        for part in parts:
            inside = depths.get(id(part))
            if inside is not None and inside[0] >= depth:
                depth = inside[0] + 1
        if depth > DEPTH:
            raise CheckpointError(f"the pickle nests values more than {DEPTH} deep")
        depths[id(made)] = (depth, made)
        return made

    # --- instructions ---
    def tuple_of(self, values: list[Any]) -> None:
        self.push(self.nested(tuple(values), values))

    def tuple_of_last(self, count: int) -> None:
        stack = self.stack
        if len(stack) - self.floor < count:
            raise CheckpointError("the pickle takes a value that it has not made")
        values = tuple(stack[-count:])
        del stack[-count:]
        stack.append(self.nested(values, values))

    def append(self, values: list[Any]) -> None:
        onto = self.top()
        if type(onto) is not list:
            raise CheckpointError(f"the pickle appends to a {type(onto).__name__}")
        onto.extend(values)

    def set_items(self, values: list[Any]) -> None:
        into = self.top()
        if not isinstance(into, dict) or len(values) % 2:
            raise CheckpointError(f"the pickle sets items of a {type(into).__name__}")
        for key, value in zip(values[::2], values[1::2]):
            into[key] = value

    def add_items(self, values: list[Any]) -> None:
        into = self.top()
        if type(into) is not set:
            raise CheckpointError(f"the pickle adds to a {type(into).__name__}")
        into.update(values)

    def frozen(self) -> None:
        values = self.marked()
        self.push(self.nested(frozenset(values), values))

    def dict_of_marked(self) -> None:
        values = self.marked()
        self.push({})
        self.set_items(values)

    def remember(self, key: int) -> None:
        if len(self.stack) <= self.floor:
            raise CheckpointError("the pickle takes a value that it has not made")
        self.memo[key] = self.stack[-1]

    def recall(self, key: int) -> None:
        if key not in self.memo:
            raise CheckpointError(f"the pickle reads place {key} of its memory, which is empty")
        self.push(self.memo[key])

    def name(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise CheckpointError("the pickle names something by what is no text")
        self.push(self.find(module, name))

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(module, name)

    def reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        if type(arguments) is not tuple:
            raise CheckpointError("the pickle calls a function with what is no tuple")
        try:
            call = self.calls[function]
        except (KeyError, TypeError):
            raise CheckpointError(f"the pickle calls {_called(function)}, which may be named but not called") from None
        self.push(self.nested((call or function)(*arguments), arguments))

    def new_object(self, keywords: bool) -> None:
        kwargs = self.pop() if keywords else {}
        arguments, cls = self.pop(), self.pop()
        if not isinstance(cls, type) or not (cls in self.calls or self.instances(cls)):
            raise CheckpointError(f"the pickle makes an instance of {_called(cls)}, which it may not")
        if self.instances(cls):
            made = cls.__new__(cls, *arguments, **kwargs)
        else:
            made = (self.calls[cls] or cls)(*arguments, **kwargs)
        self.push(self.nested(made, arguments))

    def build(self) -> None:
        state, made = self.pop(), self.top()
        cls = type(made)
        # The state of a class or a function would change the library itself, for the whole process.
        if cls is OrderedDict:
            _set_attributes(made, state)
        elif not self.instances(cls):
            raise CheckpointError(f"the pickle sets the state of {_called(made)}, which it may not")
        elif callable(getattr(cls, "__setstate__", None)):
            made.__setstate__(state)
        else:
            slots = {}
            if type(state) is tuple and len(state) == 2:
                state, slots = state
            _set_attributes(made, state)
            for key, value in (slots or {}).items():
                setattr(made, key, value)

    def old_text(self, data: bytes) -> str | bytes:
        """A string of Python 2."""
        return data if self.encoding == "bytes" else data.decode(self.encoding)

    def quoted(self) -> str | bytes:
        text = self.line()
        if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in b"'\"":
            raise CheckpointError("the pickle has a string without quotes")
        return self.old_text(codecs.escape_decode(text[1:-1])[0])

    def whole_number(self) -> int | bool:
        text = self.line()
        return text == b"01" if text in (b"00", b"01") else int(text)


class _Nothing:
    """A placeholder for anything a pickle would create."""


class Skimmer(Unpickler):
    """Scans a pickle without building anything except the values of its persistent ids.

    Args:
        file: as for `Unpickler`.
        known (dict): (module, name) -> the value of that name; other names become placeholders.
        persistent (function): a persistent id -> its value.
    """

    def __init__(self, file: BinaryIO, known: dict[tuple[str, str], Any], persistent: Callable[[Any], Any]) -> None:
        super().__init__(file, lambda *name: known.get(name, _Nothing()), {}, None, persistent, "latin1")

    def reduce(self) -> None:
        self.pop(), self.pop()
        self.push(_Nothing())

    def new_object(self, keywords: bool) -> None:
        if keywords:
            self.pop()
        self.reduce()

    def build(self) -> None:
        self.pop(), self.top()

    def append(self, values: list[Any]) -> None:
        self.top()

    set_items = add_items = append

    def frozen(self) -> None:
        self.marked()
        self.push(_Nothing())


def _called(value):
    return getattr(value, "__qualname__", None) or f"a {type(value).__name__}"


def _set_attributes(made, state):
    if state is None:
        return
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise CheckpointError(f"the pickle sets the state of {_called(made)} by what are no names and values")
    made.__dict__.update(state)


def _signed(data):
    return int.from_bytes(data, "little", signed=True)


def _unknown(code):
    if not code:
        return CheckpointError("the pickle is cut short")
    return CheckpointError(f"the pickle has the instruction {code!r}, which no checkpoint needs")


_U8, _U16, _U32, _U64, _I32, _F64 = map(struct.Struct, ("<B", "<H", "<I", "<Q", "<i", ">d"))

_INSTRUCTIONS = {
    pickle.PROTO: lambda u: u.take(1),
    pickle.FRAME: lambda u: u.take(8),
    pickle.MARK: lambda u: u.mark(),
    pickle.POP: lambda u: u.pop() if u.has_top() else u.marked(),
    pickle.POP_MARK: lambda u: u.marked(),
    pickle.DUP: lambda u: u.push(u.top()),
    pickle.NONE: lambda u: u.push(None),
    pickle.NEWTRUE: lambda u: u.push(True),
    pickle.NEWFALSE: lambda u: u.push(False),
    pickle.INT: lambda u: u.push(u.whole_number()),
    pickle.BININT: lambda u: u.push(u.number(_I32)),
    pickle.BININT1: lambda u: u.push(u.byte()),
    pickle.BININT2: lambda u: u.push(u.number(_U16)),
    pickle.LONG: lambda u: u.push(int(u.line().rstrip(b"L"))),
    pickle.LONG1: lambda u: u.push(_signed(u.counted(_U8))),
    pickle.LONG4: lambda u: u.push(_signed(u.counted(_U32))),
    pickle.FLOAT: lambda u: u.push(float(u.line())),
    pickle.BINFLOAT: lambda u: u.push(u.number(_F64)),
    pickle.STRING: lambda u: u.push(u.quoted()),
    pickle.BINSTRING: lambda u: u.push(u.old_text(u.counted(_U32))),
    pickle.SHORT_BINSTRING: lambda u: u.push(u.old_text(u.counted(_U8))),
    pickle.BINBYTES: lambda u: u.push(u.counted(_U32)),
    pickle.SHORT_BINBYTES: lambda u: u.push(u.counted(_U8)),
    pickle.BINBYTES8: lambda u: u.push(u.counted(_U64)),
    pickle.BYTEARRAY8: lambda u: u.push(bytearray(u.counted(_U64))),
    pickle.UNICODE: lambda u: u.push(u.line().decode("raw-unicode-escape")),
    pickle.BINUNICODE: lambda u: u.push(u.counted(_U32).decode("utf-8", "surrogatepass")),
    pickle.SHORT_BINUNICODE: lambda u: u.push(u.counted(_U8).decode("utf-8", "surrogatepass")),
    pickle.BINUNICODE8: lambda u: u.push(u.counted(_U64).decode("utf-8", "surrogatepass")),
    pickle.EMPTY_TUPLE: lambda u: u.push(()),
    pickle.TUPLE: lambda u: u.tuple_of(u.marked()),
    pickle.TUPLE1: lambda u: u.tuple_of_last(1),
    pickle.TUPLE2: lambda u: u.tuple_of_last(2),
    pickle.TUPLE3: lambda u: u.tuple_of_last(3),
    pickle.EMPTY_LIST: lambda u: u.push([]),
    pickle.LIST: lambda u: u.push(u.marked()),
    pickle.APPEND: lambda u: u.append([u.pop()]),
    pickle.APPENDS: lambda u: u.append(u.marked()),
    pickle.EMPTY_DICT: lambda u: u.push({}),
    pickle.DICT: lambda u: u.dict_of_marked(),
    pickle.SETITEM: lambda u: u.set_items([u.pop(), u.pop()][::-1]),
    pickle.SETITEMS: lambda u: u.set_items(u.marked()),
    pickle.EMPTY_SET: lambda u: u.push(set()),
    pickle.ADDITEMS: lambda u: u.add_items(u.marked()),
    pickle.FROZENSET: lambda u: u.frozen(),
    pickle.GET: lambda u: u.recall(int(u.line())),
    pickle.BINGET: lambda u: u.recall(u.byte()),
    pickle.LONG_BINGET: lambda u: u.recall(u.number(_U32)),
    pickle.PUT: lambda u: u.remember(int(u.line())),
    pickle.BINPUT: lambda u: u.remember(u.byte()),
    pickle.LONG_BINPUT: lambda u: u.remember(u.number(_U32)),
    pickle.MEMOIZE: lambda u: u.remember(len(u.memo)),
    pickle.GLOBAL: lambda u: u.name(u.line().decode(), u.line().decode()),
    pickle.STACK_GLOBAL: lambda u: u.stack_global(),
    pickle.REDUCE: lambda u: u.reduce(),
    pickle.NEWOBJ: lambda u: u.new_object(False),
    pickle.NEWOBJ_EX: lambda u: u.new_object(True),
    pickle.BUILD: lambda u: u.build(),
    pickle.BINPERSID: lambda u: u.push(u.persistent(u.pop())),
}


def names_in(file: BinaryIO) -> list[tuple[str, str]]:
    """The (module, name) pairs that a pickle names, in their order; nothing is built.

    Raises:
        CheckpointError: the pickle cannot be read.
    """
    import pickletools

    found, texts, memo = [], [], {}
    try:
        for code, argument, _ in pickletools.genops(file):
            if code.name == "GLOBAL":
                found.append(tuple(argument.split(" ", 1)))
            elif code.name == "STACK_GLOBAL":
                found.append(tuple(texts[-2:]))
            elif code.name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
                memo[len(memo) if argument is None else argument] = texts[-1] if texts else None
            elif code.name in ("GET", "BINGET", "LONG_BINGET"):
                texts.append(memo.get(argument))
            elif "UNICODE" in code.name or "STRING" in code.name:
                texts.append(argument)
            else:
                continue
    except Exception as error:
        raise CheckpointError(f"the pickle is malformed ({type(error).__name__}: {error})") from None
    return list(OrderedDict.fromkeys(found))
