"""The numbers that every library starts from, so that all do the same work: their losses are compared.

`rust/src/data.rs` is the same in Rust.
"""

from math import prod

# Name -> shapes in PyTorch's layout, in the order of the layers: weight, bias, weight, bias ...
MLP = [(32, 64), (32,), (10, 32), (10,)]
LENET = [(6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (120, 400), (120,), (84, 120), (84,), (10, 84), (10,)]
BATCH = 32
LABELS = [3 * i % 10 for i in range(BATCH)]
# The step whose loss is compared.
STEPS = 5


def numbers(shape: tuple[int, ...], which: int, scale: float = 1.0) -> list[float]:
    """Numbers in [-scale, scale) for the tensor of this number."""
    return [((7919 * i + 104729 * which) % 2003 / 2003 * 2 - 1) * scale for i in range(prod(shape))]


def parameters(shapes: list[tuple[int, ...]]) -> list[list[float]]:
    """The initial parameters, each scaled by the root of the layer's number of inputs."""
    found = []
    for which, shape in enumerate(shapes):
        weight = shapes[which - which % 2]
        found.append(numbers(shape, which + 1, prod(weight[1:]) ** -0.5))
    return found
