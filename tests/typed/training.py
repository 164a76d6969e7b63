"""A training script as a user with types writes it. Type checkers read it, and a test runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import rustgrad as torch
import rustgrad.nn as nn
import rustgrad.nn.functional as F
from rustgrad import Tensor
from rustgrad.optim.lr_scheduler import CosineAnnealingLR, StepLR
from rustgrad.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x = torch.randn(n, 4)
        self.y = (self.x**2).sum(dim=1, keepdim=True)

    def __len__(self) -> int:
        return self.x.size(0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Scale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("count", torch.zeros(1, dtype=torch.long))

    def forward(self, x: Tensor, power: int = 1) -> Tensor:
        return x * self.gain**power


class Net(nn.Module):
    def __init__(self, hidden: Sequence[int]) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden[0]), nn.ReLU(), nn.LayerNorm(hidden[0]), nn.Dropout(0.1))
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(hidden, hidden[1:])])
        self.scale = Scale(hidden[-1])
        self.head = nn.Linear(hidden[-1], 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        for layer in self.layers:
            x = F.gelu(layer(x), approximate="tanh")
        return self.head(self.scale(x, power=2))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * grad * x


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    losses: list[float] = [F.mse_loss(model(x), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def batches(x: Tensor, size: int) -> Iterator[Tensor]:
    for start in range(0, len(x), size):
        yield x[start : start + size]


def train(folder: Path, epochs: int = 2) -> float:
    torch.manual_seed(0)
    device = torch.device("gpu" if False else "cpu")
    data = Squares(64)
    fit, held = random_split(data, [48, 16], generator=torch.Generator().manual_seed(1))
    loader = DataLoader(fit, batch_size=16, shuffle=True, drop_last=True)
    model = Net([16, 8]).to(device)
    optimizer = torch.optim.AdamW(
        [{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": 1e-2}],
        lr=1e-3,
        betas=(0.9, 0.99),
        weight_decay=0.01,
    )
    schedules = [StepLR(optimizer, step_size=5, gamma=0.5), CosineAnnealingLR(optimizer, T_max=10)]
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.MSELoss()(model(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            assert norm.item() >= 0
            optimizer.step()
        for schedule in schedules:
            schedule.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "net.pt")
    model.load_state_dict(torch.load(folder / "net.pt", map_location="cpu")["model"])
    return evaluate(model, DataLoader(held, batch_size=16))


def tensors() -> Tensor:
    """Calls in PyTorch's various forms."""
    a, b = torch.randn(10, 3), torch.zeros((10, 3), dtype=torch.float64, requires_grad=True)
    sizes: torch.Size = a.shape
    rows: int = a.size(0)
    both: torch.Size = a.size() + sizes[1:]
    values, indices = a.max(dim=1)
    top = torch.topk(a, k=2)
    largest: Tensor = top.values
    name: str = str(a.dtype)
    flat = a.view(-1).reshape(5, 6).permute(1, 0).contiguous().view((30,))
    out = 1 - a @ b.T.float() / 2 + torch.tensor([1.0]) ** 2
    out[0, 1:] = 0
    out += rows
    mask = (out > 0) & ~(out == 1)
    pieces = torch.cat([values, largest.flatten(), indices.float()], dim=0)
    unique, counts = torch.unique(indices, return_counts=True)
    (grad,) = torch.autograd.grad(b.sum(), [b], allow_unused=True)
    hook = b.register_hook(lambda g: g * 2)
    hook.remove()
    solved = torch.linalg.solve(torch.eye(3), torch.ones(3))
    q, r = torch.linalg.qr(torch.eye(3))
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = Square.apply(b)
    numbers: list[float] = flat.tolist()
    assert len(both) == 3 and name and len(numbers) == 30 and grad is not None and y is not None and bool(mask.any())
    return pieces + counts.sum() + unique[0] + solved.sum() + (q @ r).trace() + torch.special.expit(a).mean()


def main(folder: Path) -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    dataset = TensorDataset(x, torch.arange(2))
    first, label = dataset[0]
    print(train(folder), tensors().shape, first.shape, int(label), [len(part) for part in batches(x, 1)])


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]))
