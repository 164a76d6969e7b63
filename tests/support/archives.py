"""Archives of TorchScript: those that PyTorch wrote, with what it computes, and such as are made up."""

import functools
import io
import zipfile
from pathlib import Path

from support.target import torch

RECORDED = Path(__file__).parents[1] / "golden" / "torchscript.zip"
MODULE = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"


@functools.cache
def _recorded():
    with zipfile.ZipFile(RECORDED) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def names():
    """The names of the recorded archives."""
    return sorted(name[:-3] for name in _recorded() if name.endswith(".pt"))


def recorded(name):
    """An archive as a file, and what was recorded of it: arguments, result, gradients, state."""
    data = _recorded()
    return io.BytesIO(data[f"{name}.pt"]), torch.load(io.BytesIO(data[f"{name}.ref"]), weights_only=False)


def made(
    code, pickle=b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x89ub.", constants=b"\x80\x02).", **entries
):
    """An archive with this code, and a module without attributes."""
    file = io.BytesIO()
    parts = {
        "data.pkl": pickle,
        "code/__torch__.py": code,
        "constants.pkl": constants,
        "version": "10\n",
        "byteorder": "little",
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (parts | entries).items():
            archive.writestr(f"a/{name}", content)
    file.seek(0)
    return file


def of_body(body, head="self: __torch__.M, x: Tensor", before=""):
    """An archive whose `forward` has these lines."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return made(before + MODULE + f"  def forward({head}):\n{lines}")


def same(found, expected, path="result"):
    """Compares values of all kinds that archives return."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, torch.Tensor) and found.dtype == expected.dtype, path
        near = {torch.half: 2e-2, torch.bfloat16: 2e-2}.get(expected.dtype, 1e-4)
        assert found.shape == expected.shape, path
        assert torch.allclose(found.detach(), expected, near, near, equal_nan=True), (path, found, expected)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(found, type(expected)) and len(found) == len(expected), path
        for i, (a, b) in enumerate(zip(found, expected)):
            same(a, b, f"{path}[{i}]")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), path
        for key in expected:
            same(found[key], expected[key], f"{path}[{key!r}]")
    elif isinstance(expected, (float, complex)):
        assert type(found) is type(expected), path
        assert found == expected or found != found or abs(found - expected) < 1e-9 * abs(expected), (
            path,
            found,
            expected,
        )
    else:
        assert type(found) is type(expected) and found == expected, (path, found, expected)
