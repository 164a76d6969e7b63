"""Loads and runs damaged plans in a process of its own, whose memory is bounded: `python -m support.damaged_plans SEED N DIR`.

Prints a line for each exception that may not be raised, and "done" at the end.
"""

import json
import random
import resource
import sys
import warnings
from pathlib import Path

from support import plan_files, target
from support.target import torch

safetensors = torch.utils.safetensors

ROOM = 3 << 29


def saved(folder: Path) -> list[bytes]:
    """Plans of several kinds: inference, training, views and writes, generators."""
    nn, compiler = torch.nn, torch.compiler
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)
    )
    weight = nn.Parameter(torch.randn(3, 2))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    base = torch.arange(12.0)

    def step(x):
        optimizer.zero_grad()
        loss = (x @ weight).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def views(x, y):
        base.mul_(0.5)
        x.add_(1)
        rows = torch.split(x, 1)
        return {
            "a": base[2:6].reshape(2, 2) + rows[0].sum(),
            "b": [y.data, torch.cat([x, y]).to(torch.float64)],
            "c": x,
        }

    calls = [
        (model, (torch.randn(2, 1, 4, 4),)),
        (step, (torch.randn(4, 3),)),
        (views, (torch.ones(2, 2), torch.ones(3, 2))),
    ]
    files = []
    for f, args in calls:
        compiler.save(f, folder / "plan.rgx", *args)
        files.append((folder / "plan.rgx").read_bytes())
    return files


def attempt(data: bytes, path: Path) -> str:
    """What went wrong with a file, if something did that may not."""
    path.write_bytes(data)
    try:
        program = torch.compiler.load(path)
    except torch.compiler.PlanError:
        return ""
    except MemoryError:
        return ""
    except Exception as error:
        # A file may be larger than memory.
        return "" if "not enough memory" in str(error) else f"load raises {type(error).__name__}: {error}"
    try:
        given = [torch.ones(shape, dtype=dtype) for _, dtype, shape, _ in program.inputs]
        program._program.run(given)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, MemoryError) as error:
        if type(error).__name__ in ("InternalError", "PanicException"):
            return f"run raises {type(error).__name__}: {error}"
    except BaseException as error:
        return f"run raises {type(error).__name__}: {error}"
    return ""


def pool():
    """Tensors of many kinds, and the file of a plan that holds them and does nothing."""
    made = {}
    for i, shape in enumerate([(), (0,), (3,), (2, 3), (3, 3), (1, 2, 3), (2, 1, 4, 4), (1, 1, 2, 2, 2)]):
        for dtype in ("float32", "float64", "int64", "bool", "float16", "complex64", "uint8"):
            made[f"{dtype}.{i}"] = torch.ones(shape).to(getattr(torch, dtype))
    looks = []
    for name, t in made.items():
        shape, strides, dtype = list(t.shape), list(t.stride()), str(t.dtype).removeprefix("torch.")
        look = {"name": name, "memory": name, "dtype": dtype, "shape": shape, "strides": strides, "offset": 0}
        looks.append({**look, "device": "cpu"})
    graph = {"dtype": "float32", "device": "cpu", "inputs": [], "tensors": looks, "steps": [], "results": []}
    graph["generators"] = [{"seed": 1, "offset": 0, "device": "cpu"}]
    graph["sources"] = [{"tensor": i} for i in range(len(looks))]
    texts = {"format": "rustgrad.plan", "version": "1", "producer": "rustgrad", "graph": ""}
    texts["interface"] = json.dumps({"parameters": [], "result": None})
    return plan_files.parts(safetensors.save(made, {**texts, "graph": json.dumps(graph)}))


def one_step(path: Path, rng: random.Random, op, held) -> str:
    """What went wrong with a call of an op through a file, with arguments of the right kinds."""
    header, graph, rest = held
    graph = {**graph, "steps": [plan_files.step(op, len(graph["sources"]), rng)]}
    data = plan_files.joined(header, graph, rest)
    path.with_name("last.rgx").write_bytes(data)
    return attempt(data, path)


def main(seed: int, count: int, folder: Path) -> None:
    """Damages files `count` times, and calls ops as often."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    files = saved(folder)
    names = sorted({op["name"] for op in torch._C.op_table()})
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    for i in range(count):
        data = rng.choice(files)
        if i % 3:
            header, graph, rest = plan_files.parts(data)
            for _ in range(rng.randint(1, 3)):
                graph = plan_files.damaged_graph(graph, rng, names)
            data = plan_files.joined(header, graph, rest)
        else:
            data = plan_files.damaged_bytes(data, rng)
        # What is there if the process ends.
        (folder / "last.rgx").write_bytes(data)
        if told := attempt(data, folder / "damaged.rgx"):
            print(f"{i}: {told}", flush=True)
    ops, held = torch._C.op_table(), pool()
    for _ in range(count):
        op = rng.choice(ops)
        if told := one_step(folder / "damaged.rgx", rng, op, held):
            print(f"{op['name']}: {told}", flush=True)
    print("done")


if __name__ == "__main__":
    assert target.NAME
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
