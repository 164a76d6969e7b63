"""What the pictures of the examples share: the style of the demo, and panels with a line by step."""

from __future__ import annotations

import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from demo_pictures import BLUE, GREEN, GREY, GRID, INK, ORANGE, RED, STYLE

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "GRID",
    "INK",
    "ORANGE",
    "RED",
    "STYLE",
    "figure",
    "heading",
    "line",
    "plain",
    "plt",
    "save",
    "smooth",
]


def figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure with a grid of axes, always as a two-dimensional array."""
    made, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)
    return made, axes


def heading(made: Any, text: str, note: str = "") -> None:
    """A bold title at the left, with a grey line below it."""
    made.suptitle(text, x=0.01, ha="left", fontsize=15, fontweight="bold", color=INK)
    if note:
        made.text(0.01, 0.005, note, ha="left", va="bottom", fontsize=9, color=GREY)


def line(axis: Any, x: Any, y: Any, title: str, color: str = BLUE, label: str | None = None, log: bool = False) -> None:
    """A curve with a title, its last value marked."""
    axis.plot(x, y, color=color, linewidth=2, label=label)
    axis.scatter([x[-1]], [y[-1]], color=color, s=28, zorder=3)
    axis.set_title(title, pad=10)
    axis.grid(axis="y")
    axis.set_axisbelow(True)
    if log:
        axis.set_yscale("log")


def plain(axis: Any) -> None:
    """An axis without ticks and frame, for an image."""
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_visible(False)


def smooth(values: list[float], width: int) -> Any:
    """The running mean over `width` values."""
    width = max(1, min(width, len(values)))
    return np.convolve(values, np.ones(width) / width, mode="valid")


def save(made: Any, path: pathlib.Path) -> None:
    """Writes the figure and closes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    layout: Any = made.get_layout_engine()
    layout.set(w_pad=0.1, h_pad=0.1, rect=(0, 0.03, 1, 0.97))
    made.savefig(path, dpi=150)
    plt.close(made)
