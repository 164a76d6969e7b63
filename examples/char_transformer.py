"""Trains a small transformer to write text one character at a time, and prints what it writes as it learns.

    python examples/char_transformer.py                     # learns from Python's own help: minutes on two cores
    python examples/char_transformer.py --text FILE         # any text, for instance Shakespeare's plays

Next to the loss, the picture shows what it wrote at different steps.
"""

from __future__ import annotations

import argparse
import math
import pathlib
from typing import Any

import example_pictures as pictures
import rustgrad as torch
import rustgrad.nn as nn
import rustgrad.nn.functional as F
from example_text import language_reference
from rustgrad import Tensor, optim
from tqdm import trange


class Block(nn.Module):
    """Attention to earlier characters, then a perceptron, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Writer(nn.Module):
    """Numbers of characters in, scores of the next character at each position out."""

    def __init__(self, characters: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.token = nn.Embedding(characters, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, x: Tensor) -> Tensor:
        x = self.token(x) + self.position(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, start: Tensor, count: int, temperature: float = 0.8) -> Tensor:
        """`start` `(N, L)` with `count` further characters, each drawn from what the model expects."""
        text = start
        for _ in range(count):
            scores = self(text[:, -self.context :])[:, -1] / temperature
            text = torch.cat([text, torch.multinomial(F.softmax(scores, dim=-1), 1)], dim=1)
        return text


class Text:
    """A text as numbers of its characters."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        index = {c: i for i, c in enumerate(self.characters)}
        self.numbers = torch.tensor([index[c] for c in text])
        self.held_out = max(len(text) // 10, 1)

    def batch(self, size: int, length: int, held_out: bool = False) -> tuple[Tensor, Tensor]:
        """(passages, the same shifted by one character), from the held-out end of the text or from what is before it."""
        border = len(self.numbers) - self.held_out
        part = self.numbers[border:] if held_out else self.numbers[:border]
        starts = torch.randint(len(part) - length - 1, (size, 1))
        rows = part[starts + torch.arange(length + 1)]
        return rows[:, :-1], rows[:, 1:]

    def decode(self, numbers: Tensor) -> str:
        return "".join(self.characters[i] for i in numbers.tolist())


def loss_of(model: Writer, passages: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(passages).flatten(0, 1), following.flatten())


def train(
    model: Writer, text: Text, steps: int, batch: int, every: int
) -> tuple[list[float], list[tuple[int, float, str]]]:
    """Trains; returns the loss of each step, and (step, held-out loss, sample) now and then, which it also prints."""
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    losses: list[float] = []
    samples: list[tuple[int, float, str]] = []
    start = torch.tensor([[text.characters.index("\n") if "\n" in text.characters else 0]])
    bar = trange(steps, desc="training", dynamic_ncols=True)
    for step in bar:
        loss = loss_of(model, *text.batch(batch, model.context))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step == 0 or step + 1 == steps or (step + 1) % every == 0 and step + 1 + every // 2 < steps:
            with torch.no_grad():
                held_out = loss_of(model, *text.batch(64, model.context, held_out=True)).item()
            written = text.decode(model.write(start, 90)[0, 1:])
            samples.append((step + 1, held_out, written))
            bar.write(f"step {step + 1}, held-out loss {held_out:.3f}: {' / '.join(written.split(chr(10)))}")
            bar.set_postfix_str(f"loss {loss.item():.3f}, held out {held_out:.3f}")
    return losses, samples


def draw(losses: list[float], samples: list[tuple[int, float, str]], characters: int, path: pathlib.Path) -> None:
    """The loss by step, and what the model wrote on the way."""
    with pictures.plt.rc_context(pictures.STYLE):
        figure, axes = pictures.figure(1, 2, (12, 5.2), width_ratios=[1, 1.1])
        left, right = axes[0]
        curve = pictures.smooth(losses, max(1, len(losses) // 60))
        pictures.line(
            left,
            range(len(losses) - len(curve) + 1, len(losses) + 1),
            curve,
            "Cross entropy of the next character",
            label="training, running mean",
        )
        steps, held_out, _ = zip(*samples)
        left.plot(steps, held_out, color=pictures.ORANGE, marker="o", markersize=5, label="held out")
        left.axhline(math.log(characters), color=pictures.GREY, linewidth=1, linestyle=(0, (4, 3)))
        left.annotate("guessing", (steps[-1], math.log(characters)), xytext=(0, -12), textcoords="offset points", ha="right", color=pictures.GREY, fontsize=9)  # fmt: skip
        left.set_xlabel("step")
        left.legend()
        pictures.plain(right)
        right.set_title("What it writes", pad=10)
        shown = samples if len(samples) <= 6 else [samples[round(i * (len(samples) - 1) / 5)] for i in range(6)]
        for i, (step, _, written) in enumerate(shown):
            y = 0.97 - i / 6
            right.text(0, y, f"step {step}", color=pictures.BLUE, fontweight="bold", va="top")
            right.text(0.16, y, shorten(written), family="monospace", fontsize=9, va="top", linespacing=1.4)
        pictures.heading(figure, "A transformer learns to write")
        pictures.save(figure, path)


def shorten(written: str, width: int = 52, lines: int = 2) -> str:
    """A sample as two lines of text."""
    one = " ".join(written.split())
    parts = [one[i * width : (i + 1) * width] for i in range(lines)]
    return "\n".join(part.replace("$", r"\$") for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--text", help="a text file; by default Python's help")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="demo_out", help="where the picture goes")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = Text(pathlib.Path(args.text).read_text(encoding="utf-8") if args.text else language_reference())
    model = Writer(len(text.characters), args.context, args.width, 4, args.layers)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(text.numbers):,} characters, {len(text.characters)} different ones; {count:,} parameters")
    losses, samples = train(model, text, args.steps, args.batch_size, max(1, args.steps // 6))
    path = pathlib.Path(args.out) / "char_transformer.png"
    draw(losses, samples, len(text.characters), path)
    final: Any = samples[-1]
    print(f"held-out loss {final[1]:.3f} (guessing: {math.log(len(text.characters)):.3f}); wrote {path}")


if __name__ == "__main__":
    main()
