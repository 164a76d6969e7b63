"""The sample language: a call's arguments in one short string, with deterministic values.

    f32[2,3]                        a tensor; dtypes b8 u8 i8 i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64 c64 c128
    f32[2,3](pos), f32[3]           fills, see FILLS; a range (0..3) or (-1.5..2); values (= 1, nan, -0.0)
    f32[3](nograd)                  a float tensor that does not require grad; flags combine: (pos, nograd)
    f?[2,2], f?[2]                  one sample for every float dtype of the op; i? integers, c? complex, n? all of them
    [f32[2], f32[3]], dim=0         a list of tensors, keyword arguments
    1, 2.5, 1+2j, True, None, 'mean', inf, nan, float64, (1, 2), 1:3, ...

The same string always gives the same values: in the tests, and when PyTorch's results are recorded.
Needs only NumPy, and holds values as arrays (bfloat16 as float32), from which any module can create tensors.
"""

import ast
import functools
import re
import zlib
from dataclasses import dataclass, field, replace

import numpy as np

DTYPES = {
    "b8": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
FAMILIES = {
    "f": ["f16", "bf16", "f32", "f64"],
    "i": ["u8", "i8", "i16", "i32", "i64"],
    "c": ["c64", "c128"],
}
FAMILIES["n"] = FAMILIES["i"] + FAMILIES["f"] + FAMILIES["c"]
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 100.0]


class SampleError(ValueError):
    """A malformed sample: an error of the declaration, not of the op."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor argument, independent of module, device and layout."""

    dtype: str
    shape: tuple[int, ...]
    fill: str = ""
    nograd: bool = False
    seed: int = 0

    @property
    def differentiable(self) -> bool:
        return (self.dtype in FLOATS or self.dtype in COMPLEX) and not self.nograd

    def array(self) -> np.ndarray:
        return make_array(self)


@dataclass(frozen=True)
class DTypeName:
    """A dtype argument, by PyTorch's name."""

    name: str


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    text: str
    args: list = field(default_factory=list)
    kwargs: dict = field(default_factory=dict)

    def tensors(self) -> list[TensorSpec]:
        found = []
        self.map(lambda spec: found.append(spec) or spec)
        return found

    def map(self, change) -> "Call":
        """The call with every tensor (in order, also in lists) replaced by change(tensor)."""
        args = [map_value(a, change) for a in self.args]
        kwargs = {k: map_value(v, change) for k, v in self.kwargs.items()}
        return Call(self.text, args, kwargs)


def map_value(value, change):
    if isinstance(value, TensorSpec):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map_value(v, change) for v in value)
    return value


# --- values ------------------------------------------------------------------------------------------


def spread(rng, n, low, high):
    """n distinct values between low and high in random order, also distinct from those of the call's other tensors."""
    return low + (rng.permutation(n) + rng.uniform(0.2, 0.8)) / max(n, 1) * (high - low)


def spd(rng, spec):
    a = rng.uniform(-1, 1, spec.shape)
    return a @ np.swapaxes(a, -1, -2) + spec.shape[-1] * np.eye(spec.shape[-1])


FILLS = {
    "": lambda rng, n: spread(rng, n, -2.0, 2.0),
    "pos": lambda rng, n: spread(rng, n, 0.3, 2.5),
    "neg": lambda rng, n: spread(rng, n, -2.5, -0.3),
    "unit": lambda rng, n: spread(rng, n, 0.05, 0.95),
    "sym": lambda rng, n: spread(rng, n, -0.95, 0.95),
    "gt1": lambda rng, n: spread(rng, n, 1.1, 3.5),
    "big": lambda rng, n: spread(rng, n, -60.0, 60.0),
    "nonzero": lambda rng, n: spread(rng, n, 0.4, 2.0) * np.where(np.arange(n) % 2, -1, 1),
    "ties": lambda rng, n: rng.randint(-1, 2, n).astype(float),
    "zeros": lambda rng, n: np.zeros(n),
    "ones": lambda rng, n: np.ones(n),
    "special": lambda rng, n: np.array([v for _ in range(0, n, 10) for v in rng.permutation(SPECIAL)][:n], dtype=float),
    "perm": lambda rng, n: rng.permutation(n).astype(float),
    "spd": None,
}
WHOLE = {"pos": (1, 6), "neg": (-5, 0), "unit": (0, 2), "sym": (-1, 2), "gt1": (2, 6), "nonzero": (1, 6)}


RANDOM = np.random.RandomState(0)


def seeded(seed: int) -> np.random.RandomState:
    """The one random state, seeded: to make another takes a hundred times as long."""
    RANDOM.seed(seed)
    return RANDOM


@functools.lru_cache(maxsize=1 << 12)
def make_array(spec: TensorSpec) -> np.ndarray:
    array = drawn(spec)
    array.flags.writeable = False
    return array


def drawn(spec: TensorSpec) -> np.ndarray:
    n = int(np.prod(spec.shape, dtype=np.int64))
    rng = seeded(spec.seed)
    if spec.fill == "spd":
        return cast(spd(rng, spec), spec.dtype)
    if spec.fill.startswith("="):
        flat = [number(v) for v in spec.fill[1:].split(",")]
        if len(flat) != n:
            raise SampleError(f"{len(flat)} values for a tensor of {n}")
    elif ".." in spec.fill:
        low, high = spec.fill.split("..")
        flat = ranged(rng, n, float(low), float(high), spec.dtype)
    elif spec.dtype in FLOATS:
        flat = FILLS[spec.fill](rng, n)
    elif spec.dtype in COMPLEX:
        flat = FILLS[spec.fill](rng, n) + 1j * FILLS["special" if spec.fill == "special" else ""](rng, n)
    elif spec.dtype == "b8":
        flat = rng.randint(0, 2, n)
    elif spec.fill in ("perm", "zeros", "ones", "ties"):
        flat = FILLS[spec.fill](rng, n)
    else:
        low, high = WHOLE.get(spec.fill, (-4, 5))
        flat = rng.randint(0 if spec.dtype[0] == "u" else low, max(high, 6) if spec.dtype[0] == "u" else high, n)
    return cast(np.array(flat).reshape(spec.shape), spec.dtype)


def ranged(rng, n, low, high, dtype):
    if dtype in FLOATS or dtype in COMPLEX:
        return spread(rng, n, low, high)
    return rng.randint(int(low), int(high), n)


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":  # NumPy has no bfloat16: round to nearest even by hand, keep float32
        bits = values.astype(np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(values), np.float32(NAN), rounded.astype(np.uint32).view(np.float32))
    with np.errstate(invalid="ignore", over="ignore"):
        return values.astype(DTYPES[dtype])


def number(text: str):
    text = text.strip()
    if text in ("nan", "inf", "-inf", "-nan"):
        return float(text)
    return complex(text) if text.endswith("j") else float(text) if re.search(r"[.e]", text) else int(text)


# --- parsing -----------------------------------------------------------------------------------------

TENSOR = re.compile(r"(b8|[ui](?:8|16|32|64)|bf16|f16|f32|f64|c64|c128|[ficn]\?)\[([\d,\s]*)\](?:\(([^()]*)\))?")
OPEN, CLOSE = "([{", ")]}"


def split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in OPEN:
            depth += 1
        elif c in CLOSE:
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def parse(text: str, seed: str = "") -> Call:
    """The call described by a sample. Tensors get seeds from the text and their position in it."""
    count = [0]
    args, kwargs = [], {}
    for part in split(text):
        named = re.match(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.+)$", part, re.S)
        if named:
            kwargs[named[1]] = value(named[2].strip(), text + seed, count)
        elif kwargs:
            raise SampleError(f"{text!r}: a positional argument after a named one")
        else:
            args.append(value(part, text + seed, count))
    return Call(text, args, kwargs)


def value(text: str, seed: str, count: list[int]):
    if found := TENSOR.fullmatch(text):
        count[0] += 1
        dims = tuple(int(d) for d in found[2].split(",") if d.strip())
        return tensor_spec(found[1], dims, found[3] or "", zlib.crc32(f"{count[0]} {seed}".encode()))
    if text[0] == "[" and text[-1] == "]":
        return [value(v, seed, count) for v in split(text[1:-1])]
    if text[0] == "(" and text[-1] == ")":
        return tuple(value(v, seed, count) for v in split(text[1:-1]))
    if text in DTYPES.values():
        return DTypeName(text)
    if text in ("inf", "-inf", "nan"):
        return float(text)
    if text == "...":
        return ...
    if re.fullmatch(r"-?\d*:-?\d*(:-?\d*)?", text):
        return slice(*(int(v) if v else None for v in text.split(":")))
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise SampleError(f"{text!r} is no value of the sample language") from None


def tensor_spec(dtype, shape, words, seed):
    words = words.strip()
    if words.startswith("="):
        values = words.removesuffix("nograd").rstrip(", ")
        return TensorSpec(dtype, shape, values, values != words, seed)
    parts = [w.strip() for w in words.split(",") if w.strip()]
    fills = [w for w in parts if w != "nograd"]
    if len(fills) > 1 or any(f not in FILLS and ".." not in f for f in fills):
        raise SampleError(f"({words}) is no fill")
    return TensorSpec(dtype, shape, fills[0] if fills else "", "nograd" in parts, seed)


# --- derived samples -------------------------------------------------------------------------


def expand(text: str, dtypes: list[str] | None = None) -> list[str]:
    """One string for each dtype that `f?` (or `i?` ...) stands for, among the op's dtypes if given."""
    found = re.search(r"([ficn])\?\[", text)
    if not found:
        return [text]
    family = [d for d in FAMILIES[found[1]] if not dtypes or d in dtypes or DTYPES[d] in dtypes]
    return [re.sub(r"[ficn]\?(?=\[)", d, text) for d in family]


def retyped(text: str, dtype: str) -> str:
    """The sample with its float32 tensors of another dtype."""
    return re.sub(r"(?<![\w])f32(?=\[)", dtype, text)


def doubled(call: Call) -> Call:
    """The call in float64 and complex128, for numerical derivatives."""
    wide = {"f16": "f64", "bf16": "f64", "f32": "f64", "c64": "c128"}
    names = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
    call = call.map(lambda s: replace(s, dtype=wide.get(s.dtype, s.dtype)))
    kwargs = {
        k: DTypeName(names.get(v.name, v.name)) if isinstance(v, DTypeName) else v for k, v in call.kwargs.items()
    }
    return Call(call.text, call.args, kwargs)


def edge_variants(text: str, size: int = 0) -> dict[str, str]:
    """Edge cases of the sample: no rows, no columns (or so many), no dimensions, special values. Explicit values stay."""
    call = parse(text)
    specs = call.tensors()
    if not specs or any(s.fill.startswith("=") for s in specs) or not specs[0].shape:
        return {}
    rows, columns = specs[0].shape[0], specs[0].shape[-1]

    def reshaped(change):
        return TENSOR.sub(lambda m: f"{m[1]}[{','.join(map(str, change(m[2])))}]" + (f"({m[3]})" if m[3] else ""), text)

    def sized(at, old):
        def change(dims):
            shape = [int(d) for d in dims.split(",") if d.strip()]
            if shape and shape[at] == old:
                shape[at] = size
            return shape

        return change

    found = {
        f"{'no' if size == 0 else 'one'} rows": reshaped(sized(0, rows)),
        f"{'no' if size == 0 else 'one'} columns": reshaped(sized(-1, columns)),
        "0-d": reshaped(lambda _: []),
    }
    if specs[0].dtype in FLOATS and "nograd" not in text:
        found["special"] = TENSOR.sub(
            lambda m: f"{m[1]}[{m[2]}]" + ("(special)" if m[1] in FLOATS else f"({m[3]})" if m[3] else ""), text
        )
    return {name: new for name, new in found.items() if new != text}
