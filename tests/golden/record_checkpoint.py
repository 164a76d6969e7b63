"""Writes checkpoints with PyTorch, for tests that read them: python tests/golden/record_checkpoint.py

tests/golden/checkpoint.pt is of the zip format, checkpoint_legacy.pt of the one before PyTorch 1.6, and
checkpoint_module.pt holds a whole module, which must not load by default. A few kilobytes in total.
"""

from collections import OrderedDict
from pathlib import Path

import torch

HERE = Path(__file__).parent
KINDS = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


def contents():
    torch.manual_seed(0)
    x = torch.arange(6.0).reshape(2, 3)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    noted = torch.ones(2)
    noted.note = "kept"
    return {
        "x": x,
        "row": x[1],
        "transposed": x.t(),
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(x + 1),
        "scalar": torch.tensor(3),
        "empty": torch.zeros(0, 3),
        "noted": noted,
        "kinds": {k: torch.tensor([0, 1, 1]).to(getattr(torch, k)) for k in KINDS},
        "stored": torch.tensor([1, 65535]).to(torch.uint16),
        "state": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "plain": [1, 2.5, True, None, "text", b"bytes", (1, (2,)), {3}, 1j, OrderedDict(a=1)],
        "facts": [torch.float32, torch.device("cpu"), x.shape],
    }


def main():
    torch.save(contents(), HERE / "checkpoint.pt")
    legacy = {k: v for k, v in contents().items() if k not in ("stored", "kinds", "optimizer", "plain")}
    torch.save(legacy, HERE / "checkpoint_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.nn.Linear(1, 1), HERE / "checkpoint_module.pt")


if __name__ == "__main__":
    main()
