"""Tables of behaviour: every dtype pair, every kind of index, every view of every layout, every kind of nested data.

A table is a function that yields rows (name, cells); a cell is a thunk, and its result one short string: a dtype, a
layout, values, or the class and message of an error. `tests/golden/record_tables.py` records PyTorch's results, and
`tests/test_tables.py` compares. Tables about shapes are in `tables_of_shapes`.
"""

import array
import itertools
import re
import warnings
from functools import partial

import numpy as np

from support.samples import DTYPES
from support.target import torch

SHORT = {name: short for short, name in DTYPES.items()} | {"complex32": "c32"}
ALL = ["b8", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"]
STORED = ["u16", "u32", "u64"]
NUMBERS = [True, 2, 2.5, 1j]


def dtype(short):
    return getattr(torch, DTYPES[short])


def short(kind):
    return SHORT[str(kind).rsplit(".", 1)[-1]]


def said(error):
    """Class and message of an error: one line without the op's name; for an argument parser's error only the fact."""
    text = str(error).strip().split("\n")[0].replace("rustgrad", "torch").replace(" on CPU", "")
    if isinstance(error, TypeError) and re.search(
        r"invalid combination of arguments|argument '|got an unexpected|missing \d+", text
    ):
        return "TypeError"
    text = re.sub(r'"\w+" not implemented for', "not implemented for", re.sub(r"^[\w.]+(\(\))?: ", "", text))
    return f"{type(error).__name__}: {text.strip()}"


def answer(cell, wording=True):
    """The result of a cell; for an error its class, and its message if requested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return cell()
        except Exception as error:
            return said(error) if wording else type(error).__name__


def kind_of(result):
    return short(result.dtype) if isinstance(result, torch.Tensor) else type(result).__name__


def ones(kind, *shape):
    return torch.ones(shape, dtype=dtype(kind))


# --- promotion -----------------------------------------------------------------------------------------------
BINARY = {
    "add": lambda a, b: torch.add(a, b),
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: torch.div(a, b),
    "floor_divide": lambda a, b: a // b,
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "bitwise_and": lambda a, b: a & b,
    "lshift": lambda a, b: a << b,
    "where": lambda a, b: torch.where(torch.tensor([True, False]), a, b),
    "result_type": lambda a, b: torch.result_type(a, b),
}
PAIRED = {
    "atan2": lambda a, b: torch.atan2(a, b),
    "maximum": lambda a, b: torch.maximum(a, b),
    "cat": lambda a, b: torch.cat([a.reshape(-1), b.reshape(-1)]),
    "stack": lambda a, b: torch.stack([a, b]),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "matmul": lambda a, b: a.reshape(1, -1) @ b.reshape(-1, 1),
    "isclose": lambda a, b: torch.isclose(a, b),
    "copy_": lambda a, b: a.copy_(b),
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b),
    "div_": lambda a, b: a.div_(b),
    "floor_divide_": lambda a, b: a.floor_divide_(b),
    "pow_": lambda a, b: a.pow_(b),
    "eq_": lambda a, b: a.eq_(b),
    "add out=": lambda a, b: torch.add(a, a, out=b),
    "div out=": lambda a, b: torch.div(a, a, out=b),
    "sum out=": lambda a, b: torch.sum(a, dim=0, out=b.reshape(-1)[0]),
    "eq out=": lambda a, b: torch.eq(a, a, out=b),
    "index write": lambda a, b: a.__setitem__(0, b.reshape(-1)[0]) or a,
    "can_cast": lambda a, b: torch.can_cast(a.dtype, b.dtype),
    "promote_types": lambda a, b: torch.promote_types(a.dtype, b.dtype),
}


STORABLE = ("result_type", "can_cast", "promote_types", "copy_", "cat", "index write")


def given(result):
    return (
        short(result)
        if isinstance(result, torch.dtype)
        else str(result)
        if isinstance(result, bool)
        else kind_of(result)
    )


def both(call, a, b):
    """The result's dtype for two operands: a number, or (dtype, *shape) for a tensor of ones."""
    return given(call(*(ones(*x) if isinstance(x, tuple) else x for x in (a, b))))


def promotion():
    """Two tensors, a tensor and a 0-d one, and a tensor and a number."""
    for name, call in (BINARY | PAIRED).items():
        kinds = ALL + STORED if name in STORABLE else ALL
        for a in kinds:
            yield f"{name}: {a}[2], [2]", [partial(both, call, (a, 2), (b, 2)) for b in kinds]
            if name in BINARY or name.endswith("_"):
                yield f"{name}: {a}[2], []", [partial(both, call, (a, 2), (b,)) for b in kinds]
    for name, call in BINARY.items():
        for a in ALL:
            yield f"{name}: {a}[2], number", [partial(both, call, (a, 2), n) for n in NUMBERS]
            yield f"{name}: number, {a}[2]", [partial(both, call, n, (a, 2)) for n in NUMBERS]
            yield f"{name}: {a}[], number", [partial(both, call, (a,), n) for n in NUMBERS]


NAMES = (
    "sum mean prod nansum nanmean std median max argmax all any norm count_nonzero amax sort neg abs sign exp sqrt "
    "reciprocal round floor sin sigmoid relu erf square rsqrt isnan logical_not bitwise_not conj angle real imag "
    "zeros_like rand_like nonzero bincount histc"
).split()
ONE = {name: (lambda x, name=name: getattr(torch, name)(x)) for name in NAMES} | {
    "softmax": lambda x: torch.softmax(x, 0),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "cummax": lambda x: x.cummax(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "sum f32": lambda x: x.sum(dtype=torch.float32),
    "sum i64": lambda x: x.sum(dtype=torch.int64),
    "mean f64": lambda x: x.mean(dtype=torch.float64),
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "~x": lambda x: ~x,
    "abs(x)": lambda x: abs(x),
    "item": lambda x: x.sum().item(),
    "element_size": lambda x: x.element_size(),
    "is_signed": lambda x: x.is_signed(),
    "type": lambda x: x.type(),
    "to_complex": lambda x: x.dtype.to_complex(),
    "to_real": lambda x: x.dtype.to_real(),
    "itemsize": lambda x: x.dtype.itemsize,
    "repr": lambda x: repr(x.dtype),
}
FACTS = ("element_size", "is_signed", "type", "to_complex", "to_real", "itemsize", "repr", "zeros_like")


def all_given(result):
    if isinstance(result, (str, int, float, complex)):
        return f"{type(result).__name__} {result}"
    return " ".join(map(given, result)) if isinstance(result, tuple) else given(result)


def one_tensor():
    """The dtype of the result for each dtype of the argument."""

    def cell(call, a):
        return all_given(call(ones(a, 2)))

    for name, call in ONE.items():
        yield name, [partial(cell, call, a) for a in (ALL + STORED if name in FACTS else ALL)]


def limits():
    """Every field of `finfo` and `iinfo`, and how they print."""
    fields = {"finfo": "bits eps max min tiny smallest_normal resolution dtype", "iinfo": "bits max min dtype"}

    def field(which, kind, name):
        info = getattr(torch, which)(dtype(kind))
        return repr(info) if name == "__repr__" else str(getattr(info, name))

    for kind in ALL + STORED:
        for which, names in fields.items():
            yield f"{which} {kind}", [partial(field, which, kind, n) for n in [*names.split(), "__repr__"]]


# --- construction --------------------------------------------------------------------------------------------
DATA = """1 | True | 1.5 | 1j | 2**40 | 2**63 | 2**64 | -2**63 | -2**63-1 | [] | [[]] | [[], []] | () | [1] | (1, 2) | [True, False]
[1, True] | [True, 1] | [1, 2.5] | [True, 2.5] | [1, 1j] | [True, 1j] | [1.5, 1j] | [[1, 2], [3, 4]] | [(1, 2), [3, 4]]
[[1, 2], [3]] | [1, [2]] | [[1], 2] | [[[1]], [[2]]] | [None] | None | 'a' | ['a'] | [['a']] | b'ab' | object() | [object()]
{} | {1: 2} | {1, 2} | range(3) | [range(3), range(3)] | iter([1]) | (i for i in (1, 2)) | bytearray(b'ab')
float('nan') | [float('inf'), 1] | [1e400] | T(1) | T([1, 2]) | [T(1), T(2)] | [T(1), T(2.5)] | [T([1, 2]), T([3, 4])]
[T(1), 2.5] | [1, T(2.5)] | [T([1])] | [[T(1)], [T(2)]] | np.float32(1) | np.float64(1) | np.int8(1) | np.bool_(True) | np.complex64(1j)
np.float16(1) | np.uint16(1) | [np.float32(1)] | [np.float64(1), 2] | [np.int8(1)] | [np.int32(1), np.float16(2)] | [np.bool_(True)]
np.zeros(2) | np.zeros((2, 0)) | np.zeros((), 'i4') | np.zeros(2, 'u2') | np.zeros(2, 'f2') | np.zeros(2, '>i4') | np.zeros(2, 'U1')
np.zeros(2, 'O') | np.zeros(2, 'M8[s]') | [np.zeros(2), np.zeros(2)] | [np.zeros(2), np.zeros(3)] | np.arange(6)[::2] | np.arange(6)[::-1]
np.zeros(2, 'c8') | np.zeros(2, '?') | [[1, 2], T([3, 4])] | [np.array(1), np.array(2)] | 10**30 | [10**30] | -1 | [-1, 2**63-1]
memoryview(b'ab') | array.array('i', [1, 2]) | array.array('d', [1.5]) | Size([1, 2]) | float | torch.float32 | slice(1)""".replace(
    "\n", " | "
).split(" | ")
TARGETS = [None, *ALL, "u16", "u64"]


def made(call):
    result = call()
    values = [] if result.numel() > 8 else result.tolist()
    return f"{short(result.dtype)} {list(result.shape)} {values}".replace("(-0+1j)", "1j")


def construction():
    """`tensor`, `as_tensor`, ... of every kind of nested data, in its natural dtype and in every other."""
    names = {"T": torch.tensor, "np": np, "array": array, "Size": torch.Size, "torch": torch}
    makers = [
        torch.as_tensor,
        torch.asarray,
        torch.Tensor,
        torch.LongTensor,
        torch.ones(1, dtype=torch.int32).new_tensor,
        lambda data: torch.full((2,), data),
        lambda data: torch.zeros(3).fill_(data),
        lambda data: torch.zeros(3, dtype=torch.int32) + data,
    ]

    def cell(maker, text, **kwargs):
        got = made(lambda: maker(eval(text, names), **kwargs))
        # Sizes give uninitialised memory.
        return got.split("]")[0] if maker in (torch.Tensor, torch.LongTensor) else got

    for text in DATA:
        yield (
            f"tensor({text})",
            [partial(cell, torch.tensor, text, **({"dtype": dtype(k)} if k else {})) for k in TARGETS],
        )
        yield f"other makers of {text}", [partial(cell, maker, text) for maker in makers]
    yield from sharing()
    for count, offset, kind in itertools.product([-1, 0, 1, 2, 9], [0, 4, 8, -1], ["f32", "u8", "c64"]):
        call = partial(torch.frombuffer, dtype=dtype(kind), count=count, offset=offset)
        yield f"frombuffer(8 bytes, count={count}, offset={offset}, {kind})", [partial(buffered, call)]


def buffered(call):
    return made(lambda: call(bytearray(8)))


def shares(make, source):
    """Whether a write to the source is visible in the tensor."""
    source = source()
    tensor = make(source)
    before = tensor.reshape(-1)[0].item()
    source.reshape(-1)[:1] = 7 if before != 7 else 0
    return f"{short(tensor.dtype)} {'shares' if tensor.reshape(-1)[0].item() != before else 'copies'}"


def sharing():
    """Which functions share memory with their source, which copy, and which raise."""
    makers = {
        "as_tensor": torch.as_tensor,
        "asarray": torch.asarray,
        "asarray copy": lambda x: torch.asarray(x, copy=True),
        "asarray no copy": lambda x: torch.asarray(x, copy=False),
        "asarray f64 no copy": lambda x: torch.asarray(x, dtype=torch.float64, copy=False),
        "as_tensor f64": lambda x: torch.as_tensor(x, dtype=torch.float64),
        "tensor": torch.tensor,
        "from_numpy": torch.from_numpy,
        "from_dlpack": torch.from_dlpack,
    }
    sources = [
        lambda: np.zeros(4, "f4"),
        lambda: np.zeros((2, 2), "f8").T,
        lambda: np.zeros(4, "i8"),
        lambda: np.zeros(8, "f4")[::2],
        lambda: np.zeros(4, "f4")[::-1],
        lambda: torch.zeros(4),
        lambda: torch.zeros(4, dtype=torch.float64),
        lambda: np.zeros(4, ">f4"),
    ]
    others = [lambda: bytearray(8), lambda: array.array("f", [0.0, 1.0]), lambda: 3, lambda: [1, 2.5], lambda: None]

    def dtype_of(make, source):
        return short(make(source()).dtype)

    for name, make in makers.items():
        cells = [partial(shares, make, source) for source in sources] + [partial(dtype_of, make, s) for s in others]
        yield f"sharing: {name}", cells
