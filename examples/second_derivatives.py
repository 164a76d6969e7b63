"""Solves a differential equation with a network, from second derivatives of the network with respect to its input.

    python examples/second_derivatives.py       # a minute or two on two cores

A damped oscillator, `u'' + 2 d u' + w^2 u = 0` with `u(0) = 1` and `u'(0) = 0`. The network never sees the solution: its
loss is how far it is from fulfilling the equation, so the gradient of the loss needs third derivatives. After Raissi,
Perdikaris and Karniadakis, "Physics-informed neural networks" (doi:10.1016/j.jcp.2018.10.045).
"""

from __future__ import annotations

import argparse
import math
import pathlib

import example_pictures as pictures
import rustgrad as torch
import rustgrad.nn as nn
from rustgrad import Tensor, optim
from rustgrad.autograd import grad
from tqdm import trange

DAMPING, FREQUENCY = 0.6, 5.0


class Curve(nn.Module):
    """A function of time. Its form fulfils the initial conditions whatever the weights: u = 1 + t^2 N(t)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        nn.init.normal_(self.net[0].weight, std=3.0)

    def forward(self, t: Tensor) -> Tensor:
        shape: Tensor = self.net(2 * t - 1)
        return 1 + t**2 * shape


def exact(t: Tensor) -> Tensor:
    """The solution."""
    omega = math.sqrt(FREQUENCY**2 - DAMPING**2)
    return torch.exp(-DAMPING * t) * (torch.cos(omega * t) + DAMPING / omega * torch.sin(omega * t))


def residual(model: Curve, t: Tensor) -> Tensor:
    """By how much the model misses the equation at each time."""
    t = t.detach().requires_grad_()
    u = model(t)
    [velocity] = grad(u.sum(), t, create_graph=True)
    [acceleration] = grad(velocity.sum(), t, create_graph=True)
    missed: Tensor = acceleration + 2 * DAMPING * velocity + FREQUENCY**2 * u
    return missed


def train(model: Curve, steps: int, span: float) -> tuple[list[float], list[tuple[int, Tensor]]]:
    """Trains with Adam, then L-BFGS; returns the loss of each step and the curve now and then."""
    times = torch.linspace(0, span, 128)[:, None]
    shown = torch.linspace(0, span, 300)[:, None]
    losses: list[float] = []
    snapshots: list[tuple[int, Tensor]] = []
    adam = optim.Adam(model.parameters(), lr=5e-3)
    lbfgs = optim.LBFGS(model.parameters(), lr=1.0, max_iter=10, history_size=50, line_search_fn="strong_wolfe")
    switch = steps * 4 // 5
    bar = trange(steps, desc="training", dynamic_ncols=True, mininterval=0.2)
    for step in bar:
        optimizer: optim.Optimizer = adam if step < switch else lbfgs

        def closure(optimizer: optim.Optimizer = optimizer) -> float:
            optimizer.zero_grad()
            mean = residual(model, times).square().mean()
            mean.backward()
            return float(mean)

        losses.append(optimizer.step(closure) or 0.0)
        if step + 1 in {1, steps // 20, steps // 4, steps}:
            with torch.no_grad():
                snapshots.append((step + 1, model(shown)))
        if step % 20 == 0:
            bar.set_postfix_str(f"residual {math.sqrt(losses[-1]):.4f}")
    return losses, snapshots


def draw(
    model: Curve, losses: list[float], snapshots: list[tuple[int, Tensor]], span: float, path: pathlib.Path
) -> None:
    """The curve on the way, its error, and the loss."""
    t = torch.linspace(0, span, 300)[:, None]
    truth = exact(t)
    with pictures.plt.rc_context(pictures.STYLE):
        figure = pictures.plt.figure(figsize=(12.5, 5.6), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1.5, 1])
        left, top, bottom = (
            figure.add_subplot(grid[:, 0]),
            figure.add_subplot(grid[0, 1]),
            figure.add_subplot(grid[1, 1]),
        )
        left.plot(t, truth, color=pictures.GRID, linewidth=8, label="the solution", solid_capstyle="round")
        shades = ("#c5d6ee", "#8fb2df", "#5d91cf", pictures.BLUE)[-len(snapshots) :]
        for (step, curve), shade in zip(snapshots, shades):
            left.plot(t, curve, color=shade, linewidth=2, label=f"step {step}")
        left.set_ylim(-1.3, 1.5)
        left.set_title("The network by step; it never saw the solution", pad=10)
        left.set_xlabel("time")
        left.legend(loc="upper right", ncols=2)
        left.grid(axis="y")
        top.plot(t, (snapshots[-1][1] - truth).abs(), color=pictures.ORANGE, linewidth=2)
        top.set_yscale("log")
        top.set_title("Distance from the solution", pad=10)
        top.set_xlabel("time")
        top.grid(axis="y")
        pictures.line(bottom, range(1, len(losses) + 1), losses, "Mean squared residual: Adam, then L-BFGS", log=True)
        bottom.set_xlabel("step")
        figure.suptitle(f"u″ + {2 * DAMPING:g} u′ + {FREQUENCY**2:g} u = 0, solved by gradient descent", x=0.01, ha="left", fontsize=15, fontweight="bold", color=pictures.INK)  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        pictures.plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=750)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--span", type=float, default=3.0, help="the last point in time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="demo_out", help="where the picture goes")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Curve(args.width)
    losses, snapshots = train(model, args.steps, args.span)
    t = torch.linspace(0, args.span, 300)[:, None]
    with torch.no_grad():
        distance = (model(t) - exact(t)).abs().max().item()
    path = pathlib.Path(args.out) / "second_derivatives.png"
    draw(model, losses, snapshots, args.span, path)
    print(f"largest distance from the solution {distance:.2e}; wrote {path}")


if __name__ == "__main__":
    main()
