"""`python -m rustgrad.utils.show_pickle FILE`: what a pickle holds, without making any of its objects."""

from __future__ import annotations

import fnmatch
import pickle
import pprint
import struct
import sys
import zipfile
from typing import IO, Any

__all__ = ["DumpUnpickler", "FakeClass", "FakeObject", "main"]


class FakeObject:
    """An object that a pickle makes: by `name` of `module`, from `args`, with `state`."""

    def __init__(self, module: str, name: str, args: tuple[Any, ...]) -> None:
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state

    @staticmethod
    def pp_format(
        printer: Any, obj: FakeObject, stream: IO[str], indent: int, allowance: int, context: Any, level: int
    ) -> None:
        """How `pprint` shows one."""
        if not obj.args and obj.state is None:
            stream.write(repr(obj))
        elif obj.state is None:
            stream.write(f"{obj.module}.{obj.name}")
            printer._format(obj.args, stream, indent + 1, allowance + 1, context, level)
        else:
            stream.write(f"{obj.module}.{obj.name}{obj.args if obj.args else '()'}(state=\n")
            indent += printer._indent_per_level
            stream.write(" " * indent)
            printer._format(obj.state, stream, indent, allowance + 1, context, level + 1)
            stream.write(")")


class FakeClass:
    """A class or function that a pickle names; a call gives a `FakeObject`."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.__new__ = self.fake_new  # type: ignore[method-assign, assignment]

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        """An object with these arguments, the first of which is a class."""
        return FakeObject(self.module, self.name, args[1:])


class DumpUnpickler(pickle._Unpickler):  # type: ignore[misc, name-defined]
    """Reads a pickle into `FakeObject`s.

    Args:
        file (binary file): the pickle.
        catch_invalid_utf8 (bool): strings that are none become objects that say so, and no errors.
    """

    def __init__(self, file: IO[bytes], *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> FakeClass:
        """The name of a class."""
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        """What stands for data outside of the pickle."""
        return FakeObject("pers", "obj", (pid,))

    def load_binunicode(self) -> None:
        """Reads a string."""
        (size,) = struct.unpack("<I", self.read(4))
        data = self.read(size)
        try:
            text: Any = str(data, "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            if not self.catch_invalid_utf8:
                raise
            text = FakeObject("builtin", "UnicodeDecodeError", (str(error),))
        self.append(text)

    dispatch = {**pickle._Unpickler.dispatch, pickle.BINUNICODE[0]: load_binunicode}  # type: ignore[attr-defined]

    @classmethod
    def dump(cls, in_stream: IO[bytes], out_stream: IO[str] | None) -> Any:
        """Reads a pickle, prints what it holds and returns it."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value


def main(argv: list[str], output_stream: IO[str] | None = None) -> int | None:
    """Prints the pickle of a path, or of `archive.zip@entry`, where the entry may be a pattern."""
    if len(argv) != 2:
        if output_stream is not None:
            raise Exception("Pass argv of length 2.")
        sys.stderr.write(
            "usage: show_pickle PICKLE_FILE\n  PICKLE_FILE can be any of:\n    path to a pickle file\n"
            "    file.zip@member.pkl\n    file.zip@*/pattern.*\n      (shell glob pattern for members)\n"
            "      (only first match will be shown)\n"
        )
        return 2
    path, _, entry = argv[1].partition("@")
    if not entry:
        with open(path, "rb") as file:
            DumpUnpickler.dump(file, output_stream)
        return None
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if fnmatch.fnmatch(n, entry)] if "*" in entry else [entry]
        if not names:
            raise Exception(f"Could not find member matching {entry} in {path}")
        with archive.open(names[0]) as inner:
            DumpUnpickler.dump(inner, output_stream)
    return None


if __name__ == "__main__":
    pprint.PrettyPrinter._dispatch[FakeObject.__repr__] = FakeObject.pp_format  # type: ignore[attr-defined]
    sys.exit(main(sys.argv))
