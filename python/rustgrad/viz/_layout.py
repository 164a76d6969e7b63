"""Layered layout of a directed acyclic graph, after Sugiyama, Tagawa and Toda (1981).

Four steps: layers by longest path, dummy nodes on edges that skip layers, order within the layers by
barycentres (the sweep with the fewest crossings wins), and coordinates by weighted least squares that
keep the order and the gaps. The last is isotonic regression, solved exactly by pooling neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Any

GAP_X = 26.0
GAP_Y = 38.0
SWEEPS = 24


@dataclass
class Box:
    """A node of the layout; `node` is None for a dummy. x and y are its centre."""

    node: object
    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    above: list = field(default_factory=list)
    below: list = field(default_factory=list)


@dataclass
class Layout:
    """Boxes by node, routes of edges as lists of boxes, and the size of the picture."""

    boxes: dict
    routes: list
    width: float
    height: float


def _topological(nodes, edges):
    """Nodes so that every edge goes forward (Kahn's algorithm, stable)."""
    waiting = dict.fromkeys(nodes, 0)
    below = {n: [] for n in nodes}
    for a, b in edges:
        waiting[b] += 1
        below[a].append(b)
    ready = [n for n in nodes if waiting[n] == 0]
    order = []
    while ready:
        n = ready.pop()
        order.append(n)
        for m in below[n]:
            waiting[m] -= 1
            if waiting[m] == 0:
                ready.append(m)
    return order


def _layers(nodes, edges):
    """Layer of each node: longest path from a source, then sources and chains pulled down to their users."""
    above = {n: [] for n in nodes}
    below = {n: [] for n in nodes}
    for a, b in edges:
        above[b].append(a)
        below[a].append(b)
    order = _topological(nodes, edges)
    layer = {}
    for n in order:
        layer[n] = max((layer[m] + 1 for m in above[n]), default=0)
    for n in reversed(order):
        if below[n] and len(below[n]) >= len(above[n]):
            layer[n] = min(layer[m] for m in below[n]) - 1
    lowest = min(layer.values(), default=0)
    return {n: k - lowest for n, k in layer.items()}


def _with_dummies(boxes, edges):
    """(layers as lists of boxes, routes): an edge over several layers gets a dummy in each between."""
    count = max(b.layer for b in boxes.values()) + 1
    layers = [[] for _ in range(count)]
    for box in boxes.values():
        layers[box.layer].append(box)
    routes = []
    for a, b in edges:
        route = [boxes[a]]
        for k in range(boxes[a].layer + 1, boxes[b].layer):
            dummy = Box(None, 4.0, 0.0, k)
            layers[k].append(dummy)
            route.append(dummy)
        route.append(boxes[b])
        for upper, lower in zip(route, route[1:], strict=False):
            upper.below.append(lower)
            lower.above.append(upper)
        routes.append(route)
    return layers, routes


def _crossings(layers):
    total = 0
    for layer in layers[:-1]:
        place = {id(box): i for i, box in enumerate(layers[layer[0].layer + 1])} if layer else {}
        seen = []
        for box in layer:
            targets = sorted(place[id(b)] for b in box.below)
            for t in targets:
                total += len(seen) - bisect_left(seen, t + 1)
            for t in targets:
                insort(seen, t)
    return total


def _order(layers):
    """Sorts every layer by the mean position of its neighbours, up and down, and keeps the best order seen."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            neighbours = {}
            for box in layer:
                around = box.above if down else box.below
                neighbours[id(box)] = sum(b.x for b in around) / len(around) if around else box.x
            layer.sort(key=lambda box: neighbours[id(box)])  # noqa: B023 - used at once
            for i, box in enumerate(layer):
                box.x = float(i) - len(layer) / 2
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _pool(targets, weights, gaps):
    """Least-squares positions near `targets` with x[i + 1] - x[i] >= gaps[i] (pool adjacent violators)."""
    offset, offsets = 0.0, [0.0]
    for gap in gaps:
        offset += gap
        offsets.append(offset)
    blocks = []
    for target, weight, shift in zip(targets, weights, offsets, strict=True):
        blocks.append([target - shift, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, w, n = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + value * w) / (last[1] + w)
            last[1] += w
            last[2] += n
    flat = [value for value, _, n in blocks for _ in range(n)]
    return [value + shift for value, shift in zip(flat, offsets, strict=True)]


def _edge_weight(a, b):
    """Long edges are to be straight, short ones may bend."""
    return 8.0 if a.node is None and b.node is None else 3.0 if a.node is None or b.node is None else 1.0


def _place(layer, sides):
    targets, weights = [], []
    for box in layer:
        around = [b for side in sides for b in getattr(box, side)]
        weight = [_edge_weight(box, b) for b in around]
        total = sum(weight)
        targets.append(sum(b.x * w for b, w in zip(around, weight, strict=True)) / total if total else box.x)
        weights.append(total or 0.1)
    gaps = [(a.width + b.width) / 2 + GAP_X for a, b in zip(layer, layer[1:], strict=False)]
    for box, x in zip(layer, _pool(targets, weights, gaps), strict=True):
        box.x = x


def _coordinates(layers):
    for layer in layers:
        x = 0.0
        for box in layer:
            box.x = x + box.width / 2
            x += box.width + GAP_X
        for box in layer:
            box.x -= x / 2
    for _ in range(SWEEPS):
        for layer in layers[1:]:
            _place(layer, ("above",))
        for layer in reversed(layers[:-1]):
            _place(layer, ("below",))
    for _ in range(4):
        for layer in layers:
            _place(layer, ("above", "below"))
    y = 0.0
    for layer in layers:
        height = max(box.height for box in layer)
        for box in layer:
            box.y = y + height / 2
            if box.node is None:
                # A passing edge goes straight down beside the boxes of the layer.
                box.height = height
        y += height + GAP_Y


def layout(sizes: Any, edges: Any) -> Any:
    """Lays a graph out.

    Args:
        sizes (dict): node -> (width, height).
        edges (list): pairs (upper node, lower node); acyclic.
    """
    layer = _layers(list(sizes), edges)
    boxes = {n: Box(n, w, h, layer[n]) for n, (w, h) in sizes.items()}
    layers, routes = _with_dummies(boxes, edges)
    for boxes_of_layer in layers:
        for i, box in enumerate(boxes_of_layer):
            box.x = float(i) - len(boxes_of_layer) / 2
    _order(layers)
    _coordinates(layers)
    everything = [box for boxes_of_layer in layers for box in boxes_of_layer]
    left = min(b.x - b.width / 2 for b in everything)
    for box in everything:
        box.x -= left
    width = max(b.x + b.width / 2 for b in everything)
    height = max(b.y + b.height / 2 for b in everything)
    return Layout(boxes, routes, width, height)
