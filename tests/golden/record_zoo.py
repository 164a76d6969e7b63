"""Checkpoints of every layer and optimizer, both ways; `make golden` and `make parity` run it with PyTorch.

python tests/golden/record_zoo.py write FILE.gz     # save what this library saves (RUSTGRAD_TEST_MODULE: which one)
python tests/golden/record_zoo.py read FILE.gz      # load what the other one saved, and go on from there
"""

import gzip
import importlib
import io
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import zoo


def main():
    torch = importlib.import_module(os.environ.get("RUSTGRAD_TEST_MODULE", "torch"))
    torch.manual_seed(0)
    what, path = sys.argv[1:]
    if what == "write":
        file = io.BytesIO()
        torch.save(zoo.contents(torch), file)
        Path(path).write_bytes(gzip.compress(file.getvalue(), mtime=0))
    else:
        saved = torch.load(io.BytesIO(gzip.decompress(Path(path).read_bytes())))
        zoo.check(torch, saved)
        print(
            f"{torch.__name__} went on from {len(saved['layers'])} layers and {len(saved['optimizers'])} optimizers of {path}"
        )


if __name__ == "__main__":
    main()
