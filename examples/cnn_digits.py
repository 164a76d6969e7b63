"""Trains a convolutional network on handwritten digits, and draws what its first layer looks for and finds.

    python examples/cnn_digits.py                 # scikit-learn's 8 x 8 digits: a minute or two on two cores
    python examples/cnn_digits.py --data DIR      # a folder of MNIST idx .gz files

The network, the loss and the loop are written as for PyTorch.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any, cast

import demo_data
import example_pictures as pictures
import rustgrad as torch
import rustgrad.nn as nn
import rustgrad.nn.functional as F
from rustgrad import Tensor, optim
from tqdm import trange


class Net(nn.Module):
    """Images of one channel in, ten scores out."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.25)
        self.head = nn.Linear(32 * (side // 4) ** 2, 10)

    def features(self, x: Tensor) -> Tensor:
        """What the first layer finds."""
        return F.relu(self.norm1(self.conv1(x)))

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.features(x), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.head(self.dropout(x.flatten(1)))


def accuracy(model: Net, images: Tensor, labels: Tensor) -> float:
    """The share of images that the model reads correctly."""
    model.eval()
    with torch.no_grad():
        found = torch.cat([model(part).argmax(1) for part in images.split(500)])
    model.train()
    return float((found == labels).float().mean())


def train(
    model: Net, data: tuple[Tensor, Tensor], held_out: tuple[Tensor, Tensor], steps: int, batch: int
) -> tuple[list[float], list[tuple[int, float]]]:
    """Trains; returns the loss of each step, and (step, held-out accuracy) now and then."""
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    images, labels = data
    losses: list[float] = []
    checks: list[tuple[int, float]] = []
    bar = trange(steps, desc="training", dynamic_ncols=True)
    for step in bar:
        rows = torch.randint(len(images), (batch,))
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if (step + 1) % max(1, steps // 20) == 0:
            checks.append((step + 1, accuracy(model, *held_out)))
            bar.set_postfix_str(f"loss {loss.item():.3f}, held out {checks[-1][1]:.1%}")
    return losses, checks


def draw(
    model: Net, losses: list[float], checks: list[tuple[int, float]], image: Tensor, name: str, path: pathlib.Path
) -> None:
    """The course of the training; the 16 filters of the first layer, each beside what it finds in one image."""
    model.eval()
    with torch.no_grad():
        filters = model.conv1.weight[:, 0].numpy()
        found = model.features(image[None])[0].numpy()
    with pictures.plt.rc_context(pictures.STYLE):
        figure = pictures.plt.figure(figsize=(12, 5.6), layout="constrained")
        left, right = cast("tuple[Any, Any]", figure.subfigures(1, 2, width_ratios=[1, 1.25]))
        top, bottom = left.subplots(2, 1, sharex=True)
        curve = pictures.smooth(losses, max(1, len(losses) // 40))
        pictures.line(
            top, range(len(losses) - len(curve) + 1, len(losses) + 1), curve, "Cross entropy, running mean", log=True
        )
        steps, shares = zip(*checks)
        wrong = [100 * (1 - share) for share in shares]
        pictures.line(bottom, steps, wrong, "Held-out images read wrongly, %", pictures.ORANGE)
        bottom.annotate(f"{wrong[-1]:.1f} %", (steps[-1], wrong[-1]), xytext=(0, 9), textcoords="offset points", ha="right", color=pictures.ORANGE, fontweight="bold")  # fmt: skip
        bottom.set_ylim(bottom=0)
        bottom.set_xlabel("step")
        grid: Any = right.subplots(4, 8)
        limit = abs(filters).max()
        for i in range(16):
            kernel, response = grid[i // 4][2 * (i % 4)], grid[i // 4][2 * (i % 4) + 1]
            kernel.imshow(filters[i], cmap="RdBu_r", vmin=-limit, vmax=limit)
            response.imshow(found[i], cmap="Greys")
            pictures.plain(kernel)
            pictures.plain(response)
        right.suptitle(
            "The 16 filters of the first layer, and where each responds in one image", x=0.01, ha="left", fontsize=11
        )
        figure.suptitle(
            f"A convolutional network reads {name}",
            x=0.01,
            ha="left",
            fontsize=15,
            fontweight="bold",
            color=pictures.INK,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        pictures.plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="a folder of MNIST idx .gz files; by default scikit-learn's digits")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="demo_out", help="where the picture goes")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = demo_data.load(args.data, args.seed)
    shape = (-1, 1, data.side, data.side)
    x_train, y_train, x_test, y_test = (torch.tensor(a) for a in data.arrays)
    x_train, x_test = x_train.reshape(shape), x_test.reshape(shape)
    model = Net(data.side)
    losses, checks = train(model, (x_train, y_train), (x_test, y_test), args.steps, args.batch_size)
    path = pathlib.Path(args.out) / "cnn_digits.png"
    draw(model, losses, checks, x_test[0], data.name, path)
    print(f"held-out accuracy {checks[-1][1]:.2%}; wrote {path}")


if __name__ == "__main__":
    main()
