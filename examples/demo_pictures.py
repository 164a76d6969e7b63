"""Pictures of the demo, drawn with matplotlib: the training curves, and the mistakes with their images."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import matplotlib.ticker
import numpy as np

INK, GREY, GRID = "#1f2733", "#8d97a8", "#e6e9ee"
BLUE, ORANGE, GREEN, RED = "#2f6fbf", "#e08a2c", "#3f9d5a", "#cf4a4a"
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "normal",
    "axes.titlelocation": "left",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "grid.color": GRID,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def _panel(
    axis: Any,
    epochs: Any,
    train: Any,
    held: Any,
    title: str,
    label: Callable[[float], str],
    offset: int,
) -> None:
    axis.plot(epochs, train, color=BLUE, linewidth=2, label="training (with dropout)")
    axis.plot(epochs, held, color=ORANGE, linewidth=2, label="held out")
    axis.scatter([epochs[-1]], [held[-1]], color=ORANGE, s=28, zorder=3)
    axis.annotate(
        label(held[-1]), (epochs[-1], held[-1]), xytext=(0, offset), textcoords="offset points",
        ha="right", color=ORANGE, fontweight="bold",
    )  # fmt: skip
    axis.set_title(title, pad=12)
    axis.set_xlabel("epoch")
    axis.grid(axis="y")
    axis.set_axisbelow(True)
    axis.margins(x=0.03)


def _floor(smoothing: float, classes: int = 10) -> float:
    """The smallest cross entropy possible with smoothed labels: the entropy of the labels themselves."""
    right, other = 1 - smoothing + smoothing / classes, smoothing / classes
    return -(right * np.log(right) + (classes - 1) * other * np.log(other)) if smoothing else 0.0


def curves(history: dict[str, list[float]], path: pathlib.Path, name: str, smoothing: float, held_out: int) -> None:
    """Loss and share of wrong answers by epoch, for the training and the `held_out` held-out images."""
    epochs = np.arange(1, len(history["loss"]) + 1)
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
        _panel(left, epochs, history["loss"], history["held_out_loss"], "Cross entropy, log scale", "{:.3f}".format, 9)
        left.set_yscale("log")
        floor = _floor(smoothing)
        if floor:
            left.axhline(floor, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
            left.annotate(
                f"{floor:.2f}: the least that labels smoothed by {smoothing:g} allow", (epochs[0], floor), xytext=(0, -12),
                textcoords="offset points", color=GREY, fontsize=9,
            )  # fmt: skip
            left.set_ylim(bottom=floor * 0.9)
        left.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
        left.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        # Errors, not accuracy: late progress would be invisible between 98 and 100 %.
        least = 50 / held_out  # half an image: the logarithm of zero errors is undefined
        wrong = [np.maximum(100 - np.array(history[key]) * 100, least) for key in ("accuracy", "held_out_accuracy")]
        _panel(
            right,
            epochs,
            wrong[0],
            wrong[1],
            "Images read wrongly, log scale",
            lambda v: f"{v if v > least else 0:.2f} %",
            9,
        )
        right.set_yscale("log")
        right.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        right.yaxis.set_major_formatter(lambda v, _: f"{v:g} %")
        right.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        left.legend(loc="upper right")
        figure.suptitle(f"Learning to read {name}", x=0.01, ha="left", fontsize=15, fontweight="bold", color=INK)
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.12, h_pad=0.1)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _mistake(axes: tuple[Any, Any], image: Any, label: int, probabilities: Any, top: float) -> None:
    picture, bars = axes
    guess = int(probabilities.argmax())
    picture.imshow(image, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    picture.set_xticks([])
    picture.set_yticks([])
    for spine in picture.spines.values():
        spine.set_visible(True)
        spine.set_color(GRID)
    picture.set_title(f"{label}", loc="left", color=GREEN, fontsize=13, fontweight="bold", pad=5)
    picture.set_title(f"read as {guess}", loc="right", color=RED, fontsize=10, fontweight="normal", pad=5)
    colours = [GREEN if d == label else RED if d == guess else GREY for d in range(10)]
    bars.bar(range(10), probabilities, color=colours, width=0.75)
    bars.set_ylim(0, top)
    bars.set_xlim(-0.6, 9.6)
    bars.set_xticks(range(10))
    bars.tick_params(axis="x", length=0, labelsize=7, pad=2)
    bars.set_yticks([])
    bars.spines["left"].set_visible(False)


def mistakes(images: Any, labels: Any, probabilities: Any, path: pathlib.Path, most: int = 24) -> int:
    """The misclassified held-out images, most confident errors first; returns their number."""
    wrong = np.flatnonzero(probabilities.argmax(1) != labels)
    order = wrong[np.argsort(-probabilities[wrong].max(1), kind="stable")]
    shown = order[:most]
    columns = max(1, min(8, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(max(1.55 * columns, 6.2), 2.35 * rows + 0.55), layout="constrained")
        grid = figure.subplots(2 * rows, columns, squeeze=False, gridspec_kw={"height_ratios": [3.2, 1] * rows})
        for axis in grid.flat:
            axis.set_visible(False)
        for i, k in enumerate(shown):
            row, column = divmod(i, columns)
            pair = (grid[2 * row, column], grid[2 * row + 1, column])
            for axis in pair:
                axis.set_visible(True)
            _mistake(pair, images[k], int(labels[k]), probabilities[k], probabilities[shown].max())
        which = f"the {len(shown)} surest of {len(wrong)}" if len(wrong) > len(shown) else f"all {len(wrong)}"
        title = f"Mistakes on held-out digits: {which}" if len(wrong) else "No mistakes on the held-out digits"
        figure.suptitle(
            f"{title}, of {len(labels)} images", x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK
        )
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.08, h_pad=0.07)
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return len(wrong)
