"""Writes export_*.pt2 with PyTorch: archives of exported programs, with a call and what it returns as an extra file.

Run with a Python that has PyTorch: python tests/golden/record_export.py
"""

import copy
import io
import json
import pathlib
import zipfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim, export, save
from torch.utils import _pytree

HERE = pathlib.Path(__file__).parent


def fill(module):
    start = 0
    with torch.no_grad():
        for p in module.parameters():
            values = (torch.arange(start, start + p.numel()) * 7) % 11 - 5
            p.copy_((values.float() / 8).reshape(p.shape))
            start += p.numel()


def numbers(*shape):
    count = int(torch.tensor(shape).prod())
    return (((torch.arange(count) * 5) % 13 - 6).float() / 4).reshape(shape)


def plain(tree):
    return [t.tolist() if isinstance(t, torch.Tensor) else t for t in _pytree.tree_leaves(tree)]


def strip(graph):
    """Leaves out places in the program, which are those of the machine."""
    for node in graph["nodes"]:
        node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
        for part in node["inputs"]:
            if "as_graph" in part["arg"]:
                strip(part["arg"]["as_graph"]["graph"])


def write(name, module, args, dynamic_shapes=None, call=None, core=False):
    fill(module)
    program = export(module, args, dynamic_shapes=dynamic_shapes)
    call = call or args
    results = copy.deepcopy(module)(*copy.deepcopy(call))
    program = program.run_decompositions() if core else program
    ops = [str(n.target) for n in program.graph.nodes if n.op == "call_function" and "aten" in str(n.target)]
    expected = json.dumps({"inputs": plain(call), "results": plain(results), "ops": ops})
    buffer = io.BytesIO()
    save(program, buffer, extra_files={"expected.json": expected})
    with zipfile.ZipFile(HERE / f"{name}.pt2", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as small:
        archive = zipfile.ZipFile(buffer)
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename.endswith("model.json"):
                data = json.loads(content)
                strip(data["graph_module"]["graph"])
                content = json.dumps(data).encode()
            small.writestr(entry.filename, content)


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.b, self.l = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Linear(8, 3)

    def forward(self, x):
        return self.l(F.max_pool2d(self.b(self.c(x)).relu_(), 2).flatten(1))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.n = nn.Embedding(5, 4), nn.LSTM(4, 3, batch_first=True), nn.LayerNorm(3)
        self.register_buffer("k", torch.ones(3))
        self.register_buffer("h", torch.ones(3) * 2, persistent=False)
        self.c = torch.tensor([1.0, 2, 3])

    def forward(self, d, i, flag):
        y = self.n(self.r(self.e(i))[0])
        with torch.no_grad():
            z = y * self.h + 1
        v = torch.cond(y.sum() > 0, lambda t: t * 2, lambda t: t - 1, (z,))
        q = F.scaled_dot_product_attention(y, y, y, is_causal=True)
        self.k.add_(1)
        y[:, 0] = 0.5
        found = [*q.max(-1), q.split(1, 1)[0]]
        scaled = d["x"][..., None] * self.k
        return {
            "y": y + self.c, "v": v, "l": found, "n": i.shape[0] * 2 + 1, "k": scaled, "f": torch.full((2,), 2.0), "x": None,
            "t": i.to(torch.float64), "i": y[:, torch.arange(2)],
        }  # fmt: skip


if __name__ == "__main__":
    example, other = (numbers(2, 1, 4, 4),), (numbers(3, 1, 4, 4),)
    batch = ({0: Dim("batch", min=2)},)
    write("export_cnn", Convolution(), example, batch, other)
    write("export_cnn_core", Convolution().eval(), example, batch, other, core=True)
    write("export_cnn_train_core", Convolution(), example, core=True)
    shapes = {"d": {"x": None}, "i": {0: Dim("b", min=2, max=9)}, "flag": None}
    two, three = torch.tensor([[0, 1, 2], [3, 4, 0]]), torch.tensor([[0, 1, 2], [3, 4, 0], [1, 1, 1]])
    write("export_mixed", Mixed(), ({"x": numbers(2)}, two, True), shapes, ({"x": numbers(2)}, three, True))
