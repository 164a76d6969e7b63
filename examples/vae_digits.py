"""Trains a variational autoencoder on handwritten digits, and draws its plane of digits.

    python examples/vae_digits.py                 # scikit-learn's 8 x 8 digits: a minute or two on two cores
    python examples/vae_digits.py --data DIR      # a folder of MNIST idx .gz files

Loss: the evidence lower bound of Kingma and Welling, "Auto-Encoding Variational Bayes" (arXiv:1312.6114), equation 10.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import demo_data
import example_pictures as pictures
import numpy as np
import rustgrad as torch
import rustgrad.nn as nn
import rustgrad.nn.functional as F
from rustgrad import Tensor, distributions, optim
from tqdm import trange

Normal: Any = distributions.Normal


class VAE(nn.Module):
    """Pixels to a distribution over a plane, and a point of the plane back to pixels."""

    def __init__(self, pixels: int, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, 2)
        self.scale = nn.Linear(hidden, 2)
        self.decoder = nn.Sequential(
            nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, pixels)
        )

    def encode(self, x: Tensor) -> Any:
        """Where in the plane an image may lie."""
        hidden = self.encoder(x)
        return Normal(self.mean(hidden), F.softplus(self.scale(hidden)) + 1e-4)

    def decode(self, z: Tensor) -> Tensor:
        """The logits of pixels at a point of the plane."""
        return self.decoder(z)


def bound(model: VAE, x: Tensor) -> tuple[Tensor, Tensor]:
    """(reconstruction error, divergence from the standard normal), in nats an image."""
    where = model.encode(x)
    logits = model.decode(where.rsample())
    error = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    prior = Normal(torch.zeros(2), torch.ones(2))
    return error, distributions.kl_divergence(where, prior).sum(1).mean()


def train(model: VAE, images: Tensor, steps: int, batch: int) -> list[tuple[float, float]]:
    """Trains; returns (reconstruction error, divergence) of each step."""
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-4)
    history: list[tuple[float, float]] = []
    bar = trange(steps, desc="training", dynamic_ncols=True, mininterval=0.2)
    for step in bar:
        error, divergence = bound(model, images[torch.randint(len(images), (batch,))])
        loss = error + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        history.append((error.item(), divergence.item()))
        if step % 50 == 0:
            bar.set_postfix_str(f"reconstruction {history[-1][0]:.2f}, divergence {history[-1][1]:.2f} nats")
    return history


def plane(model: VAE, side: int, cells: int) -> Any:
    """One picture of the digits at the points of a grid of equal probability under the prior."""
    edges = (torch.arange(cells) + 0.5) / cells
    points = Normal(torch.tensor(0.0), torch.tensor(1.0)).icdf(edges)
    grid = torch.stack(torch.meshgrid(points.flip(0), points, indexing="ij")[::-1], dim=-1).reshape(-1, 2)
    with torch.no_grad():
        tiles = torch.sigmoid(model.decode(grid)).reshape(cells, cells, side, side)
    tiles = F.pad(tiles, (1, 1, 1, 1))  # white lines between the digits
    picture: Tensor = tiles.permute(0, 2, 1, 3).reshape(cells * (side + 2), cells * (side + 2))
    return picture.numpy()


def draw(
    model: VAE,
    history: list[tuple[float, float]],
    images: Tensor,
    labels: Any,
    side: int,
    name: str,
    path: pathlib.Path,
) -> None:
    """The plane of digits, where the images lie in it, and the loss."""
    model.eval()
    with torch.no_grad():
        places = model.encode(images).mean.numpy()
    with pictures.plt.rc_context(pictures.STYLE):
        figure = pictures.plt.figure(figsize=(13, 6.2), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1.08, 1], height_ratios=[1.6, 1])
        left, right, below = (
            figure.add_subplot(grid[:, 0]),
            figure.add_subplot(grid[0, 1]),
            figure.add_subplot(grid[1, 1]),
        )
        left.imshow(plane(model, side, 16), cmap="Greys", interpolation="nearest")
        left.set_title("The plane, decoded: every cell equally probable", pad=10)
        pictures.plain(left)
        colours = pictures.plt.get_cmap("tab10")
        for digit in range(10):
            points = places[labels == digit]
            right.scatter(points[:, 0], points[:, 1], s=7, alpha=0.55, color=colours(digit), linewidths=0)
            if len(points):
                centre = np.median(points, axis=0)
                right.annotate(str(digit), tuple(centre), ha="center", va="center", fontweight="bold", fontsize=12, bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": colours(digit)})  # fmt: skip
        right.set_title("Where held-out images lie in it", pad=10)
        right.set_aspect("equal", adjustable="datalim")
        errors, divergences = (pictures.smooth(list(column), max(1, len(history) // 60)) for column in zip(*history))
        steps = range(len(history) - len(errors) + 1, len(history) + 1)
        pictures.line(below, steps, errors, "Nats an image, running means", label="reconstruction")
        pictures.line(
            below,
            steps,
            divergences,
            "Nats an image, running means",
            pictures.ORANGE,
            "divergence from the prior",
            log=True,
        )
        below.legend(loc="center right", bbox_to_anchor=(1.0, 0.73))
        below.set_xlabel("step")
        figure.suptitle(f"A plane of {name}", x=0.01, ha="left", fontsize=15, fontweight="bold", color=pictures.INK)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        pictures.plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="a folder of MNIST idx .gz files; by default scikit-learn's digits")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="demo_out", help="where the picture goes")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = demo_data.load(args.data, args.seed)
    x_train, _, x_test, y_test = data.arrays
    model = VAE(data.side**2, args.hidden)
    history = train(model, torch.tensor(x_train), args.steps, args.batch_size)
    held_out = torch.tensor(x_test)
    with torch.no_grad():
        error, divergence = (v.item() for v in bound(model, held_out))
    path = pathlib.Path(args.out) / "vae_digits.png"
    draw(model, history, held_out[:1500], y_test[:1500], data.side, data.name, path)
    print(f"held-out bound {error + divergence:.2f} nats an image ({error:.2f} + {divergence:.2f}); wrote {path}")


if __name__ == "__main__":
    main()
