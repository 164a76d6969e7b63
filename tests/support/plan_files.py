"""Plan files taken apart and put together, damaged ones too."""

import ast
import json
import random
import struct


def parts(data: bytes):
    """The header as a dict, the graph inside it, and the bytes of the tensors."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["graph"]), data[8 + length :]


def joined(header, graph, rest: bytes) -> bytes:
    """The bytes of a file."""
    header = {**header, "__metadata__": {**header["__metadata__"], "graph": json.dumps(graph)}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


# What a damaged number or name becomes.
WRONG = (
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    1 << 20,
    1 << 31,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    1 << 64,
    1.5,
    1e300,
    None,
    True,
    "",
    "add",
)
OPS = ("", "nothing", "add", "_fused_adam_", "sum.dim", "as_strided", "nonzero", "t", "copy_", "uniform_", "empty")


INTS = (0, 1, -1, 2, 3, 4, 7, 64, -3, 1 << 20, 1 << 31, (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e-8, 1e30, {"float": "NaN"}, {"float": "inf"})


def argument(param, tensors: int, rng: random.Random):
    """A value of the kind that an op declares for a parameter, whatever its meaning."""
    kind = param["type"]

    def tensor():
        return {"tensor": rng.randrange(tensors)}

    def ints():
        return [rng.choice(INTS) for _ in range(rng.randrange(5))]

    def numbers():
        return {"numbers": [rng.choice(FLOATS) for _ in range(rng.randrange(4))]}

    if (param["optional"] or param["takes_none"]) and rng.random() < 0.4:
        return None
    if kind.startswith("Literal["):
        return rng.choice(ast.literal_eval(f"[{kind[8:-1]}]"))
    if kind in ("Sequence[Tensor]", "Sequence[Tensor | None]"):
        none = [None] * ("None" in kind)
        return {"tensors": [rng.choice([*none, rng.randrange(tensors)]) for _ in range(rng.randrange(4))]}
    makers = {
        "Tensor": tensor,
        "Tensor | Number": lambda: rng.choice((tensor(), rng.choice(INTS), rng.choice(FLOATS))),
        "Number": lambda: rng.choice((rng.choice(INTS), rng.choice(FLOATS), True, {"complex": [1.0, "inf"]})),
        "int": lambda: rng.choice(INTS),
        "float": lambda: rng.choice(FLOATS),
        "bool": lambda: rng.random() < 0.5,
        "Sequence[int]": ints,
        "int | Sequence[int]": ints,
        "Sequence[float]": numbers,
        "float | Sequence[float]": numbers,
        "dtype": lambda: {"dtype": rng.choice(("float32", "int64", "bool", "complex64", "uint16"))},
        "device | str": lambda: {"device": rng.choice(("cpu", "cpu", "meta"))},
        "memory_format": lambda: {"format": rng.choice(("contiguous_format", "channels_last", "preserve_format"))},
        "str": lambda: rng.choice(("", "ij,jk->ik", "sum", "fro")),
        "Generator": lambda: {"generator": 0},
    }
    return makers[kind]()


def step(op, tensors: int, rng: random.Random):
    """A call of an op with such arguments, in any of its forms."""
    args = {p["name"]: argument(p, tensors, rng) for p in op["params"] if p["default"] is None or rng.random() < 0.7}
    made = {"op": op["name"], "args": args, "results": []}
    if (op["inplace"] or op["only_inplace"]) and rng.random() < 0.4:
        made["form"] = "in_place"
    elif op["out"] and rng.random() < 0.3:
        made.update(form="out", out=[rng.randrange(tensors)])
    return made


def places(value, path=()):
    """All places of a value inside a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def damaged_graph(graph, rng: random.Random, names):
    """The graph with one place changed: a number, a name, a list, a field; or a step moved."""
    graph = json.loads(json.dumps(graph))
    path = rng.choice([p for p in places(graph) if p])
    owner, key, value = at(graph, path[:-1]), path[-1], at(graph, path)
    kind = rng.random()
    if path[-1] == "op" or kind < 0.1 and isinstance(value, str):
        owner[key] = rng.choice((*OPS, rng.choice(names)))
    elif kind < 0.55:
        owner[key] = rng.choice(WRONG)
    elif kind < 0.65:
        owner[key] = json.loads(json.dumps(at(graph, rng.choice([p for p in places(graph) if p]))))
    elif kind < 0.75:
        del owner[key]
    elif kind < 0.85 and isinstance(value, list):
        value[:] = value * 3 if rng.random() < 0.5 else value[::-1]
    elif kind < 0.92 and isinstance(graph.get("steps"), list):
        rng.shuffle(graph["steps"])
    else:
        owner[key] = [value] * rng.choice((0, 1, 70))
    return graph


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """The bytes with some of them changed, cut off, or twice."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(data))
        kind = rng.random()
        if kind < 0.7:
            data[i] = rng.choice((0, 255, 0x30, 0x22, rng.randrange(256)))
        elif kind < 0.85:
            del data[i:]
            data = data or bytearray(b"\0")
        else:
            data[i:i] = data[max(0, i - 9) : i]
    return bytes(data)
