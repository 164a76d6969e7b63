"""Draws a laid-out graph as SVG text: rounded boxes, smooth edges, a legend."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

MARGIN = 28.0
LINE = 15.0
DIRECTION = "Data flows down the arrows; backward() takes gradients up them."
FONT = "'Inter','Helvetica Neue',Arial,'DejaVu Sans',sans-serif"
MONO = "'JetBrains Mono','SF Mono',Menlo,'DejaVu Sans Mono',monospace"

# kind -> (fill, border, colour of the name, what the legend says)
STYLE = {
    "leaf": ("#e3effd", "#5b93d6", "#163a66", "leaf (has .grad)"),
    "input": ("#f3ecfa", "#a98bc9", "#46285f", "input (no gradient)"),
    "accumulate": ("#f1f2f4", "#b4bac4", "#5b6472", "adds to .grad"),
    "node": ("#ffffff", "#8d97a8", "#1f2733", "operation (grad_fn)"),
    "custom": ("#fdf0dd", "#d99a3d", "#6b4410", "custom Function"),
    "output": ("#dff4e4", "#4aa564", "#14492a", "output"),
}


def text_width(text: str, size: float) -> float:
    """Estimated width of a text: average glyph widths of a sans-serif face."""
    narrow = sum(text.count(c) for c in "iljtfI.,:;|!()[] ")
    wide = sum(text.count(c) for c in "mwMW@%")
    return size * (0.58 * (len(text) - narrow - wide) + 0.33 * narrow + 0.88 * wide)


def box_size(kind: Any, title: str, lines: Any) -> tuple[float, float]:
    """(width, height) of the box for a title and lines of detail."""
    size = 11.0 if kind == "accumulate" else 13.0
    widths = [text_width(title, size) * 1.12, *(len(line) * 6.7 for line in lines)]
    return max(widths) + 26, (22 if kind == "accumulate" else 28) + LINE * len(lines)


def _curve(route):
    """A path from the bottom of the first box to the top of the last: straight beside boxes, curved between layers."""
    x, y = route[0].x, route[0].y + route[0].height / 2
    path = [f"M{x:.1f},{y:.1f}"]
    for box in route[1:]:
        top = box.y - box.height / 2 - (5 if box is route[-1] else 0)
        middle = (y + top) / 2
        path.append(f"C{x:.1f},{middle:.1f} {box.x:.1f},{middle:.1f} {box.x:.1f},{top:.1f}")
        x, y = box.x, box.y + box.height / 2
        if box is not route[-1]:
            path.append(f"V{y:.1f}")
    return "".join(path)


def _box(box, kind, title, lines):
    fill, border, colour, _ = STYLE[kind]
    x, y = box.x - box.width / 2, box.y - box.height / 2
    radius = box.height / 2 if kind == "accumulate" else 7
    dash = ' stroke-dasharray="3 2"' if kind == "accumulate" else ""
    size, weight = (11, 400) if kind == "accumulate" else (13, 600)
    parts = [
        f'<g class="{kind}"><title>{escape(" ".join([title, *lines]))}</title>',
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="{border}" stroke-width="1.3"{dash}/>',
    ]
    top = box.y - LINE * len(lines) / 2 + size * 0.35
    parts.append(
        f'<text x="{box.x:.1f}" y="{top:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}">'
        f"{escape(title)}</text>"
    )
    for i, line in enumerate(lines):
        parts.append(
            f'<text x="{box.x:.1f}" y="{top + LINE * (i + 1):.1f}" class="m" font-size="11" fill="{colour}" '
            f'fill-opacity="0.75">{escape(line)}</text>'
        )
    return "".join(parts) + "</g>"


def _legend(kinds, x, y):
    parts = []
    for kind in (k for k in STYLE if k in kinds):
        fill, border, _, label = STYLE[kind]
        parts.append(
            f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="16" height="11" rx="3" fill="{fill}" stroke="{border}"/>'
            f'<text x="{x + 22:.1f}" y="{y:.1f}" font-size="11" fill="#5b6472" text-anchor="start">{label}</text>'
        )
        x += 22 + text_width(label, 11) + 22
    return "".join(parts), x


def render(picture: Any, labels: Any, title: str | None) -> str:
    """The SVG text of a `Layout`.

    Args:
        labels (dict): node -> (kind, title, lines).
        title (str or None): a heading.
    """
    head = 38.0 if title else 0.0
    kinds = {kind for kind, _, _ in labels.values()}
    legend, legend_end = _legend(kinds, MARGIN, 0.0)
    direction_width = 2 * MARGIN + text_width(DIRECTION, 11)
    width = max(picture.width + 2 * MARGIN, legend_end, direction_width, MARGIN * 2 + text_width(title or "", 17) * 1.1)
    height = picture.height + 2 * MARGIN + head + 52
    shift = (width - picture.width) / 2
    edges = "".join(f'<path d="{_curve(route)}"/>' for route in picture.routes)
    boxes = "".join(_box(picture.boxes[node], *labels[node]) for node in picture.boxes)
    heading = (
        f'<text x="{MARGIN}" y="{MARGIN + 12}" font-size="17" font-weight="600" fill="#1f2733" text-anchor="start">'
        f"{escape(title)}</text>"
        if title
        else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="{FONT}" text-anchor="middle">'
        f"<style>.m{{font-family:{MONO}}}</style>"
        '<defs><marker id="a" viewBox="0 0 10 10" refX="5" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,1 L9,5 L0,9 z" fill="#8d97a8"/></marker></defs>'
        f'<rect width="100%" height="100%" fill="#fbfcfd"/>{heading}'
        f'<g transform="translate({shift:.1f},{MARGIN + head:.1f})">'
        f'<g fill="none" stroke="#8d97a8" stroke-width="1.3" marker-end="url(#a)">{edges}</g>{boxes}</g>'
        f'<g transform="translate(0,{height - 36:.1f})">{legend}'
        f'<text x="{MARGIN}" y="20" font-size="11" fill="#5b6472" text-anchor="start">{DIRECTION}</text></g></svg>\n'
    )
