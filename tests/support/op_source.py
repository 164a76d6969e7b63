"""What the Rust source of the ops says about the arguments that they read: no compiler, only text.

`Source.read(root)` finds the functions and declarations of `src/ops`, follows from each op what its declaration mentions and what
may get its call, and knows so which ops reach a place. Too much may be followed (a function is taken for called where its
name stands), never what a name does not lead to. A name of an argument is a literal in an accessor, `c.float("eps")`, or one
that a function or closure with such a parameter is given, or that stands in the list of a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ACCESSORS = (
    "tensor|opt_tensor|tensors|scalar|opt_scalar|int|opt_int|float|opt_float|flag|ints|opt_ints|dtype|device|str|format|choice|"
    "opt_choice|generator|dim|opt_dim|opt_dims|distinct_dims|opt_distinct_dims|argument|choice_of_dims"
)
# Those that formulas have besides: a formula may number its tensors, as `d(0, A1, ..)` does.
OF_FORMULAS = "arg|wants|shape|sizes|ndim|meta_of"
TYPE = r"(?:::<[^>()]*>)?"
POSITION = re.compile(rf"\b(?:c|call|example|c\.call)\.(?:{ACCESSORS}){TYPE}\(\s*(\d+)\s*\)")
NAME = re.compile(rf'(?<![A-Z])(?<!sig)\.(?:{ACCESSORS}|{OF_FORMULAS}){TYPE}\(\s*"(\w+)"\s*\)')
LOOP = re.compile(r"for (\w+) in (\[[^\]]*\])|(\[[^\]]*\])(?:\.into_iter\(\)|\.iter\(\))?\s*\.\w+\(\|&?(\w+)\|")
CLOSURE = re.compile(r"let (\w+) = (?:move )?\|([^|]*)\|")
GIVEN_A_CALL = re.compile(r"&(?:'\w+ )?(?:impl )?(?:Call|VjpCtx|BatchedCall|Arguments|Dimensions)\b")
MAKES_A_BODY = re.compile(r"-> (?:Op|Body|Vjp|Grad|Batching|Kernel|Joint|Elementwise|Promote)\b")
NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|r#\"(?:.|\n)*?\"#|b?\"(?:\\(?:.|\n)|[^\"\\])*\"|b?'(?:\\.[^']*|[^\\'\n])'", re.DOTALL
)


def closing(code: str, at: int) -> int:
    """The bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    raise ValueError("a bracket that nothing closes")


def parts(text: str) -> list[str]:
    """What commas outside brackets separate."""
    found, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        depth += (ch in "[({") - (ch in "])}")
        if ch == "," and depth == 0:
            found.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*found, text[start:]] if p.strip()]


def parameters(signature: str) -> list[str]:
    inner = signature[signature.index("(") + 1 : signature.rindex(") -> ")]
    return [p.split("=")[0].split(" ", 1)[1].split("|")[0] for p in parts(inner) if p != "*"]


@dataclass(eq=False)
class Item:
    """A function, a static or a constant."""

    file: File
    name: str
    kind: str
    start: int
    end: int
    head: str
    owner: str | None = None  # the type of the impl block
    of_trait: bool = False
    fields: dict[str, tuple[int, int]] = field(default_factory=dict)  # of a literal of `Op`
    base: str | None = None

    @property
    def code(self) -> str:
        return self.file.code[self.start : self.end]

    def gets_a_call(self) -> bool:
        if self.kind == "static":
            return False
        if self.kind == "const":
            return not re.search(r"&str|usize|f64|i64|u32|DType", self.head)
        own = self.owner in ("VjpCtx", "Call", "BatchedCall") and "self" in self.head
        return own or bool(GIVEN_A_CALL.search(self.head) or MAKES_A_BODY.search(self.head))

    def __str__(self) -> str:
        return f"{'/'.join(self.file.key)}::{self.name}"


@dataclass(frozen=True)
class Place:
    """Where a name is read, or a position."""

    file: File
    at: int
    text: str

    def __str__(self) -> str:
        return f"{self.file.path}:{self.file.text.count(chr(10), 0, self.at) + 1}: {self.text}"


class File:
    def __init__(self, root: Path, path: Path) -> None:
        self.path = path
        key = path.relative_to(root).with_suffix("").parts
        self.key = key[:-1] if key[-1] == "mod" else key
        self.text = path.read_text()
        # The text without strings and comments, of the same length.
        self.code = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), self.text)
        self.items: list[Item] = []
        self.uses: dict[str, list[str]] = {}
        self.globs: list[list[str]] = []
        self.find_functions()
        self.find_constants()
        for m in re.finditer(r"^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", self.code, re.M):
            self.add_use([], " ".join(m[1].split()))

    def find_functions(self) -> None:
        impls = []
        for m in re.finditer(r"^[ \t]*impl\b(?:<[^{]*?>)?\s*(?:([^{]*?) for )?([^{]*?)\s*\{", self.code, re.M):
            owner = re.match(r"[\w:]*", m[2].strip("& "))
            impls.append((m.end() - 1, closing(self.code, m.end() - 1), owner and owner[0].split("::")[-1], bool(m[1])))
        for m in re.finditer(r"\bfn (\w+)", self.code):
            brace = self.first(m.end(), "{;")
            if self.code[brace] == "{":
                owner, of = next(((t, of) for a, b, t, of in impls if a < m.start() < b), (None, False))
                end = closing(self.code, brace) + 1
                item = Item(self, m[1], "fn", m.start(), end, self.code[m.start() : brace], owner, of)
                self.items.append(item)
                if "-> Op" in item.head and (literal := re.search(r"\bOp \{", self.code[brace:end])):
                    self.find_fields(item, brace + literal.end() - 1)

    def find_constants(self) -> None:
        for m in re.finditer(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(static|const) (\w+)\s*:([^=;]*)=", self.code, re.M):
            item = Item(self, m[2], m[1], m.start(), self.first(m.end(), ";"), m[3])
            self.items.append(item)
            if m[3].strip() == "Op" and (literal := re.compile(r"\s*Op \{").match(self.code, m.end())):
                self.find_fields(item, literal.end() - 1)

    def first(self, at: int, wanted: str) -> int:
        """The first of some characters outside brackets."""
        depth = 0
        while self.code[at] not in wanted or depth:
            depth += (self.code[at] in "([{") - (self.code[at] in ")]}")
            at += 1
        return at

    def find_fields(self, item: Item, brace: int) -> None:
        start, end = brace + 1, closing(self.code, brace)
        while start < end:
            stop = self.first(start, ",}")
            text = self.code[start:stop]
            if m := re.match(r"\s*\.\.([\w:]+)", text):
                item.base = m[1].removesuffix("::")
            elif m := re.match(r"\s*(\w+)", text):
                item.fields[m[1]] = (start, stop)
            start = stop + 1

    def add_use(self, before: list[str], text: str) -> None:
        if m := re.fullmatch(r"(.*?)(?:::)?\{(.*)\}", text):
            for part in parts(m[2]):
                self.add_use([*before, *filter(None, m[1].split("::"))], part)
            return
        path, _, alias = text.partition(" as ")
        segments = [*before, *path.strip().split("::")]
        if segments[-1] == "*":
            self.globs.append(segments[:-1])
        else:
            segments = segments[:-1] if segments[-1] == "self" else segments
            self.uses[alias.strip() or segments[-1]] = segments


class Source:
    def __init__(self, root: Path) -> None:
        self.files = [File(root / "src", p) for p in sorted((root / "src/ops").rglob("*.rs"))]
        self.by_key = {f.key: f for f in self.files}
        items = [i for f in self.files for i in f.items]
        self.methods: dict[str, list[Item]] = {}
        self.traits: dict[str, list[Item]] = {}  # functions in impl blocks of traits, by the type
        for i in items:
            if i.owner and "self" in i.head:
                self.methods.setdefault(i.name, []).append(i)
            if i.owner and i.of_trait:
                self.traits.setdefault(i.owner, []).append(i)
        self.ops = [i for i in items if i.kind == "static" and i.head.strip() == "Op"]
        # The ops that reach an item, or a field of a literal: with the names of their parameters.
        self.reach: dict[tuple[Item, str], dict[Item, list[str]]] = {}
        self.known: dict[Item, set[Item]] = {}
        for op in self.ops:
            self.follow(op)

    def locate(self, file: File, path: list[str]) -> tuple[File | None, list[str]]:
        """The file that a path starts with, and what is left of the path."""
        here = list(file.key)
        if path[0] == "crate":
            path = path[1:]
        elif path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                here = here[:-1] if path[0] == "super" else here
                path = path[1:]
            path = here + path
        elif path[0] in file.uses and file.uses[path[0]][0] != path[0]:
            return self.locate(file, file.uses[path[0]] + path[1:])
        else:
            path = here + path
        for n in range(len(path), 0, -1):
            if found := self.by_key.get(tuple(path[:n])):
                return found, path[n:]
        return None, path

    def resolve(self, file: File, path: list[str], seen: tuple = ()) -> list[Item]:
        """The items that a path names."""
        target, rest = self.locate(file, path)
        if target is None or len(rest) not in (1, 2):
            return []
        owner, name = (rest[0], rest[1]) if len(rest) == 2 else (None, rest[0])
        found = [i for i in target.items if i.name == name and i.owner == owner]
        if found or (target, rest[0]) in seen:
            return found
        seen = (*seen, (target, rest[0]))
        if rest[0] in target.uses:
            return self.resolve(target, [*target.uses[rest[0]], *rest[1:]], seen)
        globs = [g for g in target.globs if g[0] in ("super", "crate")]
        return [i for g in globs for i in self.resolve(target, [*g, *rest], seen)]

    def mentioned(self, item: Item, start: int, end: int) -> set[Item]:
        """What a part of an item mentions that may get its call."""
        file, code, found = item.file, item.file.code[start:end], set()
        head = item.head if item.kind == "fn" else ""
        generics = set(re.findall(r"\b([A-Z]\w*)\s*:", head.split("(")[0]))
        patterns = [p for m in re.finditer(r"\blet ([^=;]*?)=|\|([^|;]*)\|", code) for p in m.groups() if p]
        bound = set(re.findall(r"(\w+)\s*:", head)) | {n for p in patterns for n in re.findall(r"\w+", p)}
        for m in re.finditer(r"(?<![\w.:])((?:\w+(?:::<[^()]*?>)?::)*\w+)\b(?!\s*:(?!:))", code):
            path = re.sub(r"::<[^()]*?>", "", m[1]).split("::")
            variable = path[0] in bound and code[m.end() : m.end() + 1] not in ("(", ":")
            if path[0] not in generics and not variable:
                path = [item.owner, *path[1:]] if path[0] == "Self" and item.owner else path
                found.update(self.resolve(file, path))
        for name in set(re.findall(r"\b[A-Z]\w*", code)) - generics:
            if name in self.traits:
                home = self.locate(file, file.uses[name])[0] if name in file.uses else file
                found.update(i for i in self.traits[name] if i.file in (file, home))
        for name in set(re.findall(rf"\.\s*(\w+){TYPE}\(", code)):
            found.update(self.methods.get(name, ()))
        return {i for i in found if i is not item and i.gets_a_call()}

    def literal(self, op: Item, seen: tuple = ()) -> dict[str, tuple[Item, int, int]]:
        """The fields of an op's literal, its own and those that it takes over."""
        found = {name: (op, *span) for name, span in op.fields.items()}
        if not found and not op.base:
            found[""] = (op, op.start, op.end)
        for base in self.resolve(op.file, op.base.split("::")) if op.base else []:
            if base not in seen:
                found = {**self.literal(base, (*seen, op)), **found}
        return found

    def names(self, op: Item) -> list[str]:
        """The parameters of an op."""
        literal = self.literal(op)
        item, start, end = literal.get("sig") or literal[""]
        text = item.file.text[start:end]
        if not (m := re.search(r'\bsig\(\s*"([^"]*)"', text)):
            constant = re.search(r"(\w+)\s*$", text)
            declared = self.resolve(item.file, [constant[1]]) if constant else []
            m = re.search(r'\bsig\(\s*"([^"]*)"', declared[0].file.text[declared[0].start : declared[0].end])
        assert m, f"{op}: no signature"
        return parameters(m[1])

    def follow(self, op: Item) -> None:
        names, done, ahead = self.names(op), set(), set()
        for name, (item, start, end) in self.literal(op).items():
            self.reach.setdefault((item, name), {})[op] = names
            ahead |= self.mentioned(item, start, end)
        while ahead:
            item = ahead.pop()
            done.add(item)
            self.reach.setdefault((item, ""), {})[op] = names
            if item not in self.known:
                self.known[item] = self.mentioned(item, item.start, item.end)
            ahead |= self.known[item] - done

    def readers(self, place: Place) -> dict[Item, list[str]]:
        """The ops that reach a place, with the names of their parameters."""
        inside = [i for i in place.file.items if i.start <= place.at < i.end]
        if not inside:
            return {}
        item = max(inside, key=lambda i: i.start)
        name = next((n for n, (a, b) in item.fields.items() if a <= place.at < b), "")
        return self.reach.get((item, name), {})

    def positions(self) -> Iterator[tuple[Place, int]]:
        """Arguments that are read by position."""
        for f in self.files:
            for m in POSITION.finditer(f.text):
                if not f.code[m.start()].isspace():
                    yield Place(f, m.start(), m[0]), int(m[1])

    def arguments(self) -> Iterator[tuple[Place, str]]:
        """Arguments that are read by name."""
        for f in self.files:
            for m in NAME.finditer(f.text):
                if not f.code[m.start()].isspace():
                    yield Place(f, m.start(), m[0]), m[1]
            for item in f.items:
                yield from self.in_loops(item)
                for m in CLOSURE.finditer(item.code):
                    at = self.name_of_argument(m[2], item.code[m.end() :])
                    if at is not None:
                        yield from self.given(f, m[1], at, item.start + m.end(), item.end)
                if item.kind == "fn":
                    brackets = item.head.index("(", len("fn ") + len(item.name))
                    inner = item.head[brackets + 1 : closing(item.head, brackets)]
                    at = self.name_of_argument(re.sub(r"^&?(?:mut )?self,?", "", inner), item.code)
                    if at is not None:
                        for g in self.files:
                            if item in self.resolve(g, [item.name]) or item.owner:
                                yield from self.given(g, item.name, at, 0, len(g.text))

    def in_loops(self, item: Item) -> Iterator[tuple[Place, str]]:
        for m in LOOP.finditer(item.file.text, item.start, item.end):
            variable, names = m[1] or m[4], m[2] or m[3]
            if re.search(rf"\.(?:{ACCESSORS}|{OF_FORMULAS}){TYPE}\({variable}\)", item.code):
                for name in re.findall(r'"(\w+)"', names):
                    yield Place(item.file, m.start(), m[0]), name

    @staticmethod
    def name_of_argument(params: str, code: str) -> int | None:
        """Which parameter of a function is the name of an argument."""
        for i, p in enumerate(parts(params)):
            m = re.fullmatch(r"(\w+): (?:&str|impl Key)", p)
            if m and re.search(rf"\.(?:{ACCESSORS}|{OF_FORMULAS}){TYPE}\({m[1]}\)", code):
                return i
        return None

    def given(self, file: File, function: str, at: int, start: int, end: int) -> Iterator[tuple[Place, str]]:
        """The names that a function is given for its parameter `at`."""
        for m in re.compile(rf"(?<!fn )\b{function}\(").finditer(file.code, start, end):
            close = closing(file.code, m.end() - 1)
            args = parts(file.text[m.end() : close])
            if at < len(args) and (name := re.fullmatch(r'"(\w+)"', args[at])):
                yield Place(file, m.start(), file.text[m.start() : close + 1]), name[1]
