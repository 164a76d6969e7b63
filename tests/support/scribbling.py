"""The samples of the op table on memory that another process writes continuously: run by tests/test_races.py.

    python -m support.scribbling FIRST LAST CALLS PLACE      # ops FIRST..LAST of the table, CALLS of each sample

All tensors of a call are in one mapped file. A second process, which no interpreter lock blocks, alternately writes the
sample's values and values out of every range. Any result or error is allowed; the
process must survive, and no error may be a panic.
"""

import mmap
import os
import subprocess
import sys
import tempfile

import numpy as np

from support import target
from support.fuzzing import limit_memory, says_panic
from support.optable import ops
from support.samples import parse
from support.target import torch

ROOM = 1 << 15
# The invalid values: far beyond any size here, or NaN.
WRONG = {"i": 1 << 40, "u": 1 << 40, "f": np.nan, "c": np.nan, "b": True}


def write(path: str):
    """The second process: of three parts of one size, copies the second and the third to the first in turn."""
    with open(path, "r+b") as file:
        live, right, wrong = np.frombuffer(mmap.mmap(file.fileno(), 3 * ROOM), np.uint8).reshape(3, ROOM)
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1000):
            live[:] = wrong
            live[:] = right


class Memory:
    """Tensors in the mapped file."""

    def __init__(self, path: str):
        self.file = open(path, "w+b")
        self.file.truncate(3 * ROOM)
        self.parts = np.frombuffer(mmap.mmap(self.file.fileno(), 3 * ROOM), np.uint8).reshape(3, ROOM)
        self.end = 0

    def moved(self, value):
        """The tensors of a value, in this memory if NumPy has their dtype."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.moved(v) for v in value)
        if not isinstance(value, torch.Tensor) or value.dtype == torch.bfloat16 or not value.numel():
            return value
        array = np.ascontiguousarray(value.detach().numpy())
        start, self.end = self.end, -(-(self.end + array.nbytes) // 64) * 64
        if self.end > ROOM:
            return value
        limit = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else 0
        wrong = min(WRONG[array.dtype.kind], limit) if limit else WRONG[array.dtype.kind]
        views = [part[start : start + array.nbytes].view(array.dtype).reshape(array.shape) for part in self.parts]
        for view, content in zip(views, (array, array, np.full_like(array, wrong))):
            view[...] = content
        return torch.from_numpy(views[0]).requires_grad_(value.requires_grad)


def scribble(op, text: str, calls: int, memory: Memory) -> list[str]:
    for _ in range(calls):
        memory.end = 0
        args, kwargs, _ = target.build(parse(text), grad=True)
        try:
            args, kwargs = memory.moved(args), {k: memory.moved(v) for k, v in kwargs.items()}
            for result in target.carriers(op.call(*args, **kwargs)):
                if not result.is_leaf:
                    result.backward(torch.ones_like(result), retain_graph=True)
        except BaseException as error:  # a panic is not an Exception
            if says_panic(error) or not isinstance(error, Exception):
                return [f"{op.public}({text}): {type(error).__name__}: {str(error)[:300]}"]
    return []


def main():
    if sys.argv[1] == "write":
        return write(sys.argv[2])
    first, last, calls = map(int, sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shared")
        memory = Memory(path)
        writer = subprocess.Popen([sys.executable, "-m", "support.scribbling", "write", path])
        limit_memory()
        try:
            for op in ops()[first:last]:
                for text in op.sample_texts():
                    with open(sys.argv[4], "w") as place:
                        place.write(f"{op.public}({text})")
                    for problem in scribble(op, text, calls, memory):
                        print(problem)
        finally:
            writer.kill()
            writer.wait()
    print("done")


if __name__ == "__main__":
    main()
