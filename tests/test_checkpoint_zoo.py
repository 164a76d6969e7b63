"""Checkpoints of every layer and every optimizer cross between PyTorch and rustgrad, in both directions.

checkpoint_zoo.pt.gz was written by PyTorch. checkpoint_zoo_own.pt.gz was written here and read by PyTorch, which went on from it; that
what is written today has the same contents is what these tests prove without PyTorch.
"""

import gzip
import io
import pickletools
import zipfile
from pathlib import Path

import pytest
from support import target, zoo

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="compares files of the two libraries")
GOLDEN = Path(__file__).parent / "golden"


def golden(name):
    return io.BytesIO(gzip.decompress((GOLDEN / name).read_bytes()))


def pickled(file):
    """The instructions of a file's pickle, and its floats apart: losses among them depend on the order of additions."""
    with zipfile.ZipFile(file) as archive:
        [name] = [n for n in archive.namelist() if n.endswith("data.pkl")]
        steps = [(op.name, arg) for op, arg, _ in pickletools.genops(archive.read(name))]
    floats = [arg for op, arg in steps if op == "BINFLOAT"]
    return [step for step in steps if step[0] != "BINFLOAT"], floats


def test_from_pytorch(torch):
    zoo.check(torch, torch.load(golden("checkpoint_zoo.pt.gz")))


def test_to_pytorch(torch):
    """The pickle of today's file, with the names of all classes and storages, is that of the file which PyTorch read."""
    torch.manual_seed(0)
    file = io.BytesIO()
    torch.save(zoo.contents(torch), file)
    (steps, floats), (expected, expected_floats) = pickled(file), pickled(golden("checkpoint_zoo_own.pt.gz"))
    assert steps == expected
    assert floats == pytest.approx(expected_floats, rel=1e-6)
    zoo.check(torch, torch.load(golden("checkpoint_zoo_own.pt.gz")))
    file.seek(0)
    zoo.check(torch, torch.load(file))


def test_all_optimizers_are_there(torch):
    names = {n for n, c in vars(torch.optim).items() if isinstance(c, type) and issubclass(c, torch.optim.Optimizer)}
    # SparseAdam needs sparse gradients, which are not here.
    assert names - {"Optimizer", "SparseAdam"} == set(zoo.OPTIMIZERS)
