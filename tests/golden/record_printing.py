"""Records how PyTorch prints tensors: python tests/golden/record_printing.py > tests/golden/printing.json

Each case holds the dtype, the shape, the values (or the pattern that makes them), the options and the text.
The tests do not need torch: tests/printing.rs reads the file. Values are written after their
conversion to the dtype, so that reading them back rounds nothing; nan and the infinities are strings.
"""

import json
import math
import random
import sys

import torch

DTYPES = {
    "bool": torch.bool,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
}
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]
COMPLEX = ["complex64", "complex128"]
NAN, INF = math.nan, math.inf
cases = []


def plain(value):
    """A value as JSON holds it."""
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class Printed(torch.Tensor):
    pass


def record(tensor, dtype, options=None, mark=None, pattern=None, default="float32", subclass=False):
    torch.set_default_dtype(DTYPES[default])
    torch.set_printoptions(profile="default")
    if options:
        known = {k: (math.inf if k == "threshold" and v is None else v) for k, v in options.items()}
        torch.set_printoptions(**known)
    shown = tensor
    if subclass:
        shown = tensor.as_subclass(Printed)
    grad_fn = None
    if mark == "leaf":
        shown = shown.detach().requires_grad_()
    elif mark:
        leaf = shown.detach().requires_grad_()
        shown = {"add": lambda: leaf + 0, "mul": lambda: leaf * 1, "view": lambda: leaf.view(leaf.shape)}[mark]()
        grad_fn = type(shown.grad_fn).__name__
    text = repr(shown)
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)
    case = {"dtype": dtype, "shape": list(tensor.shape), "text": text}
    if pattern:
        case["pattern"] = pattern
    else:
        case["values"] = [plain(v) for v in shown.detach().reshape(-1).tolist()]
    case |= {"options": options} if options else {}
    case |= {"grad_fn": grad_fn} if grad_fn else {}
    case |= {"requires_grad": True} if mark else {}
    case |= {"default": default} if default != "float32" else {}
    case |= {"prefix": "Printed("} if subclass else {}
    cases.append(case)


def made(dtype, shape, values, **more):
    record(
        torch.tensor(values, dtype=torch.complex128 if dtype in COMPLEX else None).to(DTYPES[dtype]).reshape(shape),
        dtype,
        **more,
    )


def patterned(dtype, shape, pattern, **more):
    """Large tensors: element i is ((i * a) % m + b) * c, exact in float64."""
    a, m, b, c = pattern
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    tensor = (((i * a) % m + b).to(torch.float64) * c).to(DTYPES[dtype]).reshape(shape)
    record(tensor, dtype, pattern=pattern, **more)


FLOAT_ROWS = [
    [1.0, 2.0, 3.0],
    [0.5, 1.25, -3.75],
    [0.0, -0.0, 1.0],
    [0.0, 0.0],
    [-0.0],
    [1e-5, 1.0],
    [1e-4, 0.05],
    [1000.0, 1.5],
    [1001.0, 1.0],
    [1500.5, 1.0],
    [60000.0, 1.0],
    [NAN, 1.0],
    [NAN, 1.5],
    [INF, -INF, NAN],
    [INF, 2.0, 0.25],
    [-INF, 100.0],
    [NAN],
    [0.00001234],
    [12345.0, 67.0],
    [0.1, 0.2, 0.3],
    [-0.1, 0.0, 12.0],
    [3.14159265, 2.71828182, 1.41421356],
    [0.99999, 0.999999],
    [2.5, 3.5, 0.5],
    [0.00005, 0.00015],
    [0.03125, 0.09375, 1.00005],
]
WIDE_ROWS = [[1e8, 1.0], [1.5e8], [1e9], [1e10, -1e10], [1e20, 1.0], [1e38, 1e-38], [123456789.0, 12345678.0], [1e-30]]


def floats():
    for dtype in FLOATS:
        for row in FLOAT_ROWS:
            made(dtype, [len(row)], row)
        for value in [0.0, -0.0, 1.0, 0.5, -2.25, NAN, INF, -INF, 1e-6, 3e4]:
            made(dtype, [], [value])
    for dtype in ["bfloat16", "float32", "float64"]:
        for row in WIDE_ROWS:
            made(dtype, [len(row)], row)
    made("float64", [2], [1e300, 1e-300])
    made("float64", [2], [5e-324, 1.0])


def integers():
    for dtype in INTS:
        for row in [[0], [1, 2, 3], [100, 7, 0], [127, 64, 1, 99, 5]]:
            made(dtype, [len(row)], row)
        made(dtype, [], [42])
        made(dtype, [2, 3], [1, 20, 3, 4, 5, 60])
    for dtype in INTS[1:]:
        made(dtype, [3], [-100, 7, 0])
    made("int64", [2], [2**63 - 1, -(2**63)])
    for dtype, top in [("uint16", 2**16 - 1), ("uint32", 2**32 - 1)]:
        made(dtype, [2], [top, 3])
    record(torch.tensor([2**64 - 1, 3], dtype=torch.uint64), "uint64")
    for shape, row in [([], [True]), ([2], [True, False]), ([2, 2], [False] * 4), ([3, 1], [True] * 3)]:
        made("bool", shape, row)


def complexes():
    rows = [
        [1 + 2j, 3 - 4j],
        [0.5 + 0.25j, -1.5 - 2j],
        [complex(0, -0.0), complex(-0.0, 0)],
        [complex(NAN, INF), 1j],
        [complex(1, NAN), complex(-INF, -1)],
        [1e-6 + 1j, 1 + 1000j],
        [1e9 + 1j, 2 + 0.5j],
        [100 + 0.001j, 3 + 20j],
        [0j],
    ]
    for dtype in COMPLEX:
        for row in rows:
            made(dtype, [len(row)], row)
        for value in [1 + 1j, -2.5j, 0j, complex(NAN, NAN)]:
            made(dtype, [], [value])
        row = [complex(i - 6, (i * 5) % 7 - 3.5) for i in range(12)]
        made(dtype, [3, 4], row)
        made(dtype, [12], row)
        made(dtype, [12], row, mark="leaf")


def shapes():
    for dtype in ["float32", "float64", "int64", "int32", "bool", "complex64", "float16"]:
        for shape in [[0], [0, 3], [3, 0], [2, 0, 4], [0, 0]]:
            record(torch.zeros(shape, dtype=DTYPES[dtype]), dtype)
    for shape in [[1], [1, 1], [2, 2], [2, 3, 4], [1, 2, 1, 3], [2, 1, 2, 1, 2], [25], [7, 13], [2, 30], [3, 1, 1]]:
        for dtype, scale in [("float32", 0.37), ("float32", 1.0), ("int64", 1.0), ("float64", 12.5), ("float32", 1e-5)]:
            patterned(dtype, shape, [17, 41, -20, scale])


def summarised():
    for shape in [
        [1001],
        [1000],
        [2000],
        [40, 50],
        [1100, 2],
        [2, 1100],
        [7, 200],
        [6, 200],
        [10, 11, 12],
        [3, 3, 3, 50],
    ]:
        for dtype, scale in [("float32", 0.37), ("int64", 1.0), ("float32", 1.0)]:
            patterned(dtype, shape, [7919, 2003, -900, scale])
    patterned("float32", [1000, 1000], [7919, 10007, -5000, 0.001])
    patterned("float64", [1200], [7919, 10007, -5000, 100.0])
    patterned("bool", [1500], [1, 2, 0, 1.0])
    patterned("int16", [30, 40], [31, 3001, 0, 1.0])


def optioned():
    rows = [([3], [1.0, 2.5, 1000.123]), ([2, 2], [1.0, 2.0, 3.0, 4.0]), ([4], [1e-7, 1.0, 123.0, NAN])]
    options = [{"precision": p} for p in (0, 1, 2, 3, 6, 8, 10)]
    options += [{"sci_mode": True}, {"sci_mode": False}, {"sci_mode": True, "precision": 2}, {"linewidth": 20}]
    options += [{"linewidth": 1}, {"profile": "short"}, {"threshold": 3}, {"edgeitems": 0}, {"edgeitems": 1}]
    options += [{"threshold": 1, "edgeitems": 1}, {"threshold": 0, "edgeitems": 0}, {"profile": "full"}]
    for shape, row in rows:
        for option in options:
            for dtype in ["float32", "float64"]:
                made(dtype, shape, row, options=option)
    for option in [
        {"threshold": 5},
        {"threshold": 5, "edgeitems": 1},
        {"linewidth": 40},
        {"linewidth": 200},
        {"threshold": None},
        {"profile": "full"},
        {"threshold": 5, "edgeitems": 0},
    ]:
        for shape in [[8], [50], [5, 6], [4, 5, 6], [9, 2, 3]]:
            patterned("float32", shape, [17, 41, -20, 0.37], options=option)
            patterned("int64", shape, [17, 41, -20, 1.0], options=option)
    made("complex64", [3], [1 + 2j, 1e-9 + 3j, 4.5 - 1j], options={"sci_mode": False})
    made("complex64", [3], [1 + 2j, 1e-9 + 3j, 4.5 - 1j], options={"sci_mode": True, "precision": 1})


def suffixes():
    for mark in ["leaf", "add", "mul", "view"]:
        for dtype in ["float32", "float64", "float16", "complex64"]:
            made(dtype, [2], [1.0, -2.5], mark=mark)
            made(dtype, [], [1.5], mark=mark)
        for count in range(1, 16):
            made("float32", [count], [i * 0.3 for i in range(count)], mark=mark)
        for count in (9, 10, 11, 12, 13):
            made("float64", [count], [i * 0.3 for i in range(count)], mark=mark)
        patterned("float32", [3, 7], [17, 41, -20, 0.37], mark=mark)
        patterned("float64", [2, 8], [17, 41, -20, 0.37], mark=mark)
        record(torch.zeros(0, 3), "float32", mark=mark)
    for default in ["float64", "float16"]:
        for dtype in ["float32", "float64", "complex64", "complex128", "int64", "int32", "float16"]:
            made(dtype, [2], [1.0, 2.0], default=default)
            record(torch.zeros(0, dtype=DTYPES[dtype]), dtype, default=default)
    made("float32", [2, 2], [1.0, 2.0, 3.0, 4.5], subclass=True)
    made("float32", [25], [i * 0.5 for i in range(25)], subclass=True)


def randoms():
    rng = random.Random(0)
    for _ in range(80):
        dtype = rng.choice(["float32", "float64", "float16", "bfloat16", "complex64"])
        shape = [rng.randint(1, 5) for _ in range(rng.randint(0, 3))]
        scale = 10.0 ** rng.randint(-6, 6 if dtype in ("float32", "float64") else 3)
        count = math.prod(shape)
        row = [rng.gauss(0, 1) * scale * 10 ** rng.uniform(-1, 1) for _ in range(count)]
        if dtype == "complex64":
            row = [complex(v, rng.gauss(0, 1)) for v in row]
        if rng.random() < 0.2:
            row[rng.randrange(count)] = rng.choice([NAN, INF, -INF, 0.0, -0.0])
        made(dtype, shape, row, mark=rng.choice([None, None, "leaf", "add"]))


def main():
    for part in [floats, integers, complexes, shapes, summarised, optioned, suffixes, randoms]:
        part()
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    sys.stdout.write(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
