"""Draws the pictures of docs/autograd.md: python tools/pictures.py [FOLDER]. The output is deterministic."""

import sys
from pathlib import Path

import rustgrad as torch
from rustgrad import viz


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def product():
    w, x = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])
    return (w * x).sum(), {"w": w}


def diamond():
    w = leaf(1.0, 2.0)
    y = w.exp()
    return (y * y + y).sum(), {"w": w}


def copy_slices():
    w = leaf(1.0, 2.0)
    base = w * 1
    base[:1].mul_(10)
    return base.sum(), {"w": w}


def second():
    t = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(t**3, t, create_graph=True)
    return first, {"t": t}


PICTURES = (product, diamond, copy_slices, second)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for make in PICTURES:
        result, names = make()
        viz.draw(result, names, folder / f"{make.__name__}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "img"))
