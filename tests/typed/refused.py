# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Mistakes that type checkers must find: an unused ignore is an error too."""

import rustgrad as torch
import rustgrad.nn as nn
import rustgrad.nn.functional as F

x = torch.ones(2, 3)
nn.Linear(3)  # type: ignore[call-arg]
nn.Linear(3, "4")  # type: ignore[arg-type]
nn.Linear(3, 4)("x")  # type: ignore[arg-type]
F.relu(3)  # type: ignore[arg-type]
F.cross_entropy(x, x, reduce_="mean")  # type: ignore[call-arg]
torch.zeroes(2)  # type: ignore[attr-defined]
torch.zeros(2, dtype="float32")  # type: ignore[call-overload]
torch.optim.SGD(3, lr=0.1)  # type: ignore[arg-type]
x.sum(dims=0)  # type: ignore[call-overload]
print(x.shape.height)  # type: ignore[attr-defined]
n: str = x.size(0)  # type: ignore[assignment]
