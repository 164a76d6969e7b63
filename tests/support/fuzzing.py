"""Random calls of one op, valid and invalid: run in a separate process by tests/test_fuzz.py.

    python -m support.fuzzing FIRST LAST CALLS PLACE DEVICE      # ops FIRST..LAST of the table, CALLS each

Half of the calls start from a sample and change one argument; half are random by the signature. Before each call its
text is written to the file PLACE, so that a crash can be attributed. One call in five is hostile: its integers,
sizes and shapes are near the powers of two at which products, bytes and offsets overflow. Absurd sizes are few and
huge: they must fail at once with an error, never by filling memory.
"""

import os
import random
import sys
import traceback
from dataclasses import replace

from support import target
from support.optable import Op, ops
from support.samples import DTYPES, TensorSpec, parse
from support.signature import Param, params
from support.target import torch

ALLOWED = (
    RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, MemoryError, OverflowError, BufferError,
    AttributeError,  # raised by torch.nn.functional for non-tensors: 'int' object has no attribute 'dim'
)  # fmt: skip
INTS = [0, 1, -1, 2, 3, 5, -5, 7, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 2**100]
# Thresholds at which products with a size, the element size or another such number overflow, and their neighbours.
HOSTILE = [s * (2**p + d) for p in (20, 31, 32, 40, 58, 59, 60, 61, 62, 63) for d in (-1, 0, 1) for s in (1, -1)]
FLOATS = [0.0, -0.0, 1.0, 0.5, -1.5, 1e-300, 1e300, float("nan"), float("inf"), float("-inf")]
# Empty tensors with huge shapes.
HOLLOW = [(0, 2**31), (2**40, 0), (2, 0, 2**31), (0, 2**32, 3), (2**58, 0), (1, 2**40, 0)]
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 2), (0, 3), (2, 0), (1, 1, 1), (2, 3, 4), (3, 3), (1, 3), (2, 2, 2, 2)]
JUNK = [
    None,
    "",
    "x",
    "mean",
    "float32",
    b"x",
    object(),
    {},
    {"a": 1},
    (),
    [],
    [[1], [1, 2]],
    [None],
    1j,
    True,
    ...,
    int,
    print,
]
SPARE_BYTES = 3 << 29


def tensor(rng: random.Random, dtype: str | None = None):
    spec = TensorSpec(
        dtype or rng.choice(list(DTYPES)[:12]),
        rng.choice(SHAPES),
        rng.choice(["", "", "special", "zeros"]),
        seed=rng.randrange(99),
    )
    made = target.make(spec)
    kind = rng.randrange(6)
    if kind == 0 and made.dim() > 1:
        made = made.transpose(0, 1)
    elif kind == 1 and made.dim() and made.shape[0] == 1:
        made = made.expand(3, *made.shape[1:])
    elif kind == 2 and spec.differentiable:
        made.requires_grad_()
    return made


def hostile(rng: random.Random, param: Param):
    """An extreme value of the parameter's type: empty tensors of huge shape, huge expanded tensors, huge numbers."""
    kind = param.kind
    if kind == "Tensor" and rng.random() < 0.5:
        made = tensor(rng)
        if rng.random() < 0.7:
            return torch.empty(rng.choice(HOLLOW), dtype=made.dtype)
        return (
            made.reshape(-1)[:1].expand(*rng.choice([(2**20,), (2**10, 2**10), (2**19, 2)])) if made.numel() else made
        )
    if kind in ("int", "Scalar", "Operand"):
        return rng.choice(HOSTILE)
    if kind.startswith("int[") or kind == "Size":
        return [rng.choice([0, 1, 2, rng.choice(HOSTILE)]) for _ in range(rng.randrange(5))]
    if kind == "float":
        return rng.choice([2.0**63, -(2.0**63), 2.0**62, 1e19, 3e38, -3e38, 1.7e308])
    return good(rng, param)


def good(rng: random.Random, param: Param):
    """A value of the parameter's type, valid or not."""
    kind = param.kind
    if param.optional and rng.random() < 0.3:
        return None
    if kind == "Tensor":
        return tensor(rng)
    if kind in ("Tensor[]", "Tensors", "Tensor?[]"):
        return [tensor(rng) for _ in range(rng.randrange(4))]
    if kind == "Operand":
        return rng.choice([tensor(rng), rng.choice(INTS), rng.choice(FLOATS), 1j, True])
    if kind in ("True", "False"):
        return kind == "True"
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "int":
        return rng.choice(INTS if rng.random() < 0.4 else [0, 1, -1, 2, -2, 3])
    if kind == "float":
        return rng.choice(FLOATS)
    if kind == "Scalar":
        return rng.choice([*INTS, *FLOATS, 2 + 1j, False])
    if kind.startswith("int[") or kind == "Size":
        pool = INTS if rng.random() < 0.3 else [0, 1, 2, 3, -1]
        return [rng.choice(pool) for _ in range(rng.randrange(5))]
    if kind.startswith("float["):
        return [rng.choice(FLOATS) for _ in range(rng.randrange(4))]
    if kind == "DType":
        return target.dtype_of(rng.choice(list(DTYPES)))
    if kind == "Device":
        return rng.choice(["cpu", "cpu", "cuda", "gpu:77", "nowhere", ""])
    if param.choices and rng.random() < 0.7:
        return rng.choice(param.choices)
    if kind == "str":
        return rng.choice(["mean", "sum", "none", "tanh", "floor", "trunc", "ij,jk->ik", "i->", "...i", "->", "?"])
    return None


def junk(rng: random.Random):
    choice = rng.randrange(4)
    return [rng.choice(JUNK), rng.choice(INTS), tensor(rng), [rng.choice(JUNK), tensor(rng)]][choice]


def random_call(rng: random.Random, op: Op):
    """Arguments by the signature; one in three calls has an argument of another type."""
    args, kwargs = [], {}
    by_name = False
    of_kind = hostile if rng.random() < 0.4 else good
    for param in params(op.signature):
        if param.default is not None and rng.random() < 0.5:
            by_name = True
            continue
        value = junk(rng) if rng.random() < 0.1 else of_kind(rng, param)
        if param.keyword_only or by_name:
            kwargs[param.name] = value
        else:
            args.append(value)
    mischief = rng.randrange(12)
    if mischief == 0:
        args.append(junk(rng))
    elif mischief == 1 and args:
        args.pop()
    elif mischief == 2:
        kwargs[rng.choice(["nonsense", "dim", "out", "self"])] = junk(rng)
    return args, kwargs


def changed_sample(rng: random.Random, op: Op):
    """A sample with one argument, shape or dtype changed."""
    call = parse(rng.choice(op.sample_texts()))
    specs = call.tensors()
    if specs and rng.random() < 0.5:
        victim = rng.randrange(len(specs))
        count = iter(range(len(specs)))
        change = rng.choice(
            [{"shape": rng.choice(SHAPES), "fill": ""}, {"dtype": rng.choice(list(DTYPES)[:12]), "fill": ""}]
        )
        call = call.map(lambda s: replace(s, **change) if next(count) == victim else s)
    args, kwargs, _ = target.build(call)
    if rng.random() < 0.5:
        place = rng.choice([*range(len(args)), *kwargs]) if args or kwargs else None
        if isinstance(place, int):
            args[place] = junk(rng)
        elif place is not None:
            kwargs[place] = junk(rng)
    return args, kwargs


def describe(value) -> str:
    if isinstance(value, torch.Tensor):
        place = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"<{target.dtype_name(value.dtype)}{list(value.shape)} strides {value.stride()}{place}>"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(describe(v) for v in value) + "]"
    return repr(value)[:60]


def says_panic(error: BaseException) -> bool:
    internal = type(error).__name__ in ("InternalError", "PanicException", "SystemError")
    return internal or "panicked" in str(error) or "internal error" in str(error).lower()


def moved(rng: random.Random, value, device: str):
    """The tensors of a value moved to the device, one in eight to another."""
    if isinstance(value, torch.Tensor):
        grad = value.requires_grad
        place = device if rng.random() < 0.875 else "cpu"
        return value if place == "cpu" else value.detach().to(place).requires_grad_(grad)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(rng, v, device) for v in value)
    return value


def fuzz(op: Op, calls: int, note, device: str, salt: str) -> list[str]:
    """Calls the op and, if its results require grad, runs backward."""
    rng = random.Random(f"fuzz {op.name}{salt}")
    problems = []
    for _ in range(calls):
        make = changed_sample if op.samples and rng.random() < 0.5 else random_call
        args, kwargs = make(rng, op)
        try:
            args, kwargs = moved(rng, args, device), {k: moved(rng, v, device) for k, v in kwargs.items()}
        except RuntimeError:
            continue  # a dtype that the device does not support
        text = f"{op.public}({', '.join(map(describe, args))}, {', '.join(f'{k}={describe(v)}' for k, v in kwargs.items())})"
        note(text)
        try:
            out = op.call(*args, **kwargs)
            results = [t for t in target.tensors(out) if t.numel() < 10_000][:100]
            [target.to_numpy(t) for t in results]
            for result in results:
                if result.requires_grad and not result.is_leaf:
                    result.backward(torch.ones_like(result), retain_graph=True)
        except BaseException as error:
            if says_panic(error) or not isinstance(error, ALLOWED):
                last = traceback.format_exception_only(error)[-1].strip()
                problems.append(f"{text}: {last}")
    return problems


def limit_memory():
    """Limits the process to little more memory than it has, if the system can: absurd sizes fail at once."""
    try:
        import resource

        pages = int(open("/proc/self/statm").read().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main():
    first, last, calls = map(int, sys.argv[1:4])
    place, device = os.open(sys.argv[4], os.O_WRONLY | os.O_CREAT), sys.argv[5]
    salt = os.environ.get("RUSTGRAD_FUZZ_SALT", "")

    def note(text):
        line = text[:2000].encode()
        os.pwrite(place, line, 0)
        os.ftruncate(place, len(line))

    if device == "gpu":
        torch.zeros(1, device=device)  # the driver allocates its memory before the limit
    limit_memory()
    for op in ops()[first:last]:
        for problem in fuzz(op, calls, note, device, salt):
            print(problem)
    print("done")


if __name__ == "__main__":
    main()
