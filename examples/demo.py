"""Trains a network on handwritten digits, and writes three pictures to `demo_out/`.

    python examples/demo.py                      # scikit-learn's 1,797 digits, on the CPU
    DEVICE=gpu python examples/demo.py           # the same on a GPU, or on Mesa's software Vulkan driver
    python examples/demo.py --data DIR           # a folder of MNIST idx .gz files
    COMPILE=1 python examples/demo.py            # the same figures, by a compiled step

The network, the loss and the loop are written as for PyTorch; only the import differs.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any

import demo_data
import demo_pictures
import rustgrad as torch
import rustgrad.nn as nn
import rustgrad.nn.functional as F
from rustgrad import Tensor, optim
from rustgrad.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

History = dict[str, list[float]]
# From images and labels: the loss, and how many were read correctly.
Step = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
SMOOTHING = 0.1


class Net(nn.Module):
    """Pixels in, ten scores out."""

    def __init__(self, pixels: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(pixels, hidden)
        self.fc2 = nn.Linear(hidden, hidden // 2)
        self.fc3 = nn.Linear(hidden // 2, 10)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(F.relu(self.fc1(x)))
        x = self.dropout(F.relu(self.fc2(x)))
        return self.fc3(x)


def loss_of(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy with label smoothing, which limits overconfidence on memorised samples."""
    return F.cross_entropy(scores, labels, label_smoothing=SMOOTHING)


def evaluate(model: Net, images: Tensor, labels: Tensor) -> tuple[float, float, Tensor]:
    """(loss, accuracy, probabilities) on held-out images."""
    model.eval()
    with torch.no_grad():
        scores = model(images)
        loss = loss_of(scores, labels).item()
        accuracy = (scores.argmax(1) == labels).float().mean().item()
        return loss, accuracy, F.softmax(scores, dim=1)


def make_step(model: Net, optimizer: optim.Optimizer) -> Step:
    """Forward, backward and update on one batch."""

    def step(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        scores = model(images)
        loss = loss_of(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), (scores.argmax(1) == labels).sum()

    return step


def train_epoch(
    model: Net,
    step: Step,
    loader: DataLoader[tuple[Tensor, ...]],
    scheduler: optim.lr_scheduler.LRScheduler,
    bar: Any,
) -> tuple[float, float]:
    """One pass over the training data; returns mean loss and accuracy."""
    model.train()
    total = correct = torch.zeros((), device=next(model.parameters()).device)
    count = 0
    for images, labels in loader:
        loss, right = step(images, labels)
        scheduler.step()
        # Sums stay on the device; reading them once per epoch keeps a GPU busy.
        total = total + loss * len(labels)
        correct = correct + right
        count += len(labels)
        bar.update()
    return total.item() / count, correct.item() / count


def train(
    model: Net, loader: DataLoader[tuple[Tensor, ...]], held_out: tuple[Tensor, Tensor], epochs: int, compiled: bool
) -> tuple[History, float]:
    """Trains, shows progress, and returns the history by epoch and the milliseconds per step."""
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    step = make_step(model, optimizer)
    if compiled:
        step = torch.compile(step, fullgraph=True)
    steps = epochs * len(loader)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    history: History = {"loss": [], "accuracy": [], "held_out_loss": [], "held_out_accuracy": []}
    seconds = 0.0
    with tqdm(total=steps, unit="step", desc="training", dynamic_ncols=True, mininterval=0.2) as bar:
        for _ in range(epochs):
            start = time.perf_counter()
            loss, accuracy = train_epoch(model, step, loader, scheduler, bar)
            seconds += time.perf_counter() - start
            held_loss, held_accuracy, _ = evaluate(model, *held_out)
            for key, value in zip(history, (loss, accuracy, held_loss, held_accuracy), strict=True):
                history[key].append(value)
            bar.set_postfix_str(f"loss {loss:.4f}, acc {accuracy:.1%}, held out {held_accuracy:.1%}")
    return history, 1000 * seconds / steps


def compare(model: Net, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Milliseconds of a step as it is written and compiled: the best of ten rounds of twenty. Trains the model further."""
    plain = make_step(model, optim.Adam(model.parameters(), lr=1e-4))
    steps = [plain, torch.compile(plain, fullgraph=True)]
    best = [float("inf")] * 2
    for _ in range(10):
        for i, step in enumerate(steps):
            start = time.perf_counter()
            for _ in range(20):
                loss, _ = step(images, labels)
            loss.item()
            best[i] = min(best[i], 1000 * (time.perf_counter() - start) / 20)
    return best[0], best[1]


def describe_device(device: torch.device) -> str:
    """A description of the device."""
    if device.type == "gpu":
        return f"{device} ({torch.gpu.get_device_name(device)})"
    return f"cpu ({torch.get_num_threads()} threads)"


def parse_arguments() -> argparse.Namespace:
    """The command line; the environment variables DEVICE, DATA and COMPILE are the defaults."""
    parser = argparse.ArgumentParser(description="Train a digit reader; leave pictures in demo_out/.")
    parser.add_argument("--device", default=os.environ.get("DEVICE") or "cpu", help="cpu or gpu")
    parser.add_argument("--data", default=os.environ.get("DATA") or None, help="folder of MNIST idx .gz files")
    parser.add_argument("--compile", action="store_true", default=os.environ.get("COMPILE", "0") not in ("", "0"))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="demo_out", help="where the pictures go")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    data = demo_data.load(args.data, args.seed)
    x_train, y_train, x_test, y_test = (torch.tensor(a).to(device) for a in data.arrays)
    print(f"{data.name}: {len(x_train)} images to learn from, {len(x_test)} held out, {data.side} x {data.side} pixels")

    model = Net(data.side**2, hidden=128 if data.side <= 8 else 256).to(device)
    loader = DataLoader(TensorDataset(x_train, y_train), batch_size=args.batch_size, shuffle=True)
    history, ms = train(model, loader, (x_test, y_test), args.epochs, args.compile)

    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    _, accuracy, probabilities = evaluate(model, x_test, y_test)
    demo_pictures.curves(history, out / "curves.png", data.name, SMOOTHING, len(x_test))
    images = x_test.cpu().reshape(-1, data.side, data.side).numpy()
    wrong = demo_pictures.mistakes(images, y_test.cpu().numpy(), probabilities.cpu().numpy(), out / "mistakes.png")
    model.train()
    batch, labels = x_train[: args.batch_size], y_train[: args.batch_size]
    loss = loss_of(model(batch), labels)
    names = {"images": batch, "labels": labels, "loss": loss, **dict(model.named_parameters())}
    torch.viz.draw(loss, names, out / "graph.svg", title="The graph of one training step")

    print(f"held-out accuracy {accuracy:.2%} ({wrong} of {len(x_test)} wrong)")
    print(f"wrote {out / 'curves.png'}, {out / 'mistakes.png'}, {out / 'graph.svg'}")
    how = ", compiled" if args.compile else ""
    print(f"{ms:.3f} ms a step (batch {args.batch_size}{how}) on {describe_device(device)}")
    if args.compile:
        eager, compiled = compare(model, batch, labels)
        print(
            f"the same batch again and again: {eager:.3f} ms a step, compiled {compiled:.3f} ({eager / compiled:.2f}x)"
        )


if __name__ == "__main__":
    main()
