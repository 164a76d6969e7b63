"""Writes package.pt with PyTorch: a package of a module whose class is in it. Its code and values are below."""

import importlib
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from torch.package import PackageExporter

NET = """\
import torch
from torch import nn
import torch.nn.functional as F
import unused_dep
from .helper import scale as sc

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 2)
    def forward(self, x):
        return sc(F.relu(self.l(x)))
"""
FILES = {
    "gmod/__init__.py": "",
    "gmod/net.py": NET,
    "gmod/helper.py": "import math\ndef scale(x): return x * math.sqrt(4)\n",
    "unused_dep/__init__.py": "",
}

with tempfile.TemporaryDirectory() as folder:
    for name, text in FILES.items():
        (Path(folder) / name).parent.mkdir(exist_ok=True)
        (Path(folder) / name).write_text(text)
    sys.path.insert(0, folder)
    torch.manual_seed(0)
    net, x = importlib.import_module("gmod.net").Net(), torch.ones(2, 3)
    with PackageExporter(f"{folder}/package.pt") as e:
        e.intern("gmod.**")
        e.mock("unused_dep")
        e.save_pickle("model", "net.pkl", net)
        values = {"x": x, "row": x[0], "out": net(x).detach(), "half": x.half()}
        e.save_pickle("model", "values.pkl", values)
        e.save_text("model", "note.txt", "hello")
    with zipfile.ZipFile(f"{folder}/package.pt") as made:
        with zipfile.ZipFile(Path(__file__).parent / "package.pt", "w", zipfile.ZIP_DEFLATED) as small:
            for info in made.infolist():
                small.writestr(info.filename, made.read(info))
