"""The translations of ops, by family; importing this fills the table."""

from . import (
    activation,
    attention,
    convolution,
    create,
    elementwise,
    indexing,
    logic,
    loss,
    movement,
    norm,
    order,
    recurrent,
    reduce,
    resize,
    special,
    view,
)

__all__ = [
    "activation",
    "attention",
    "convolution",
    "create",
    "elementwise",
    "indexing",
    "logic",
    "loss",
    "movement",
    "norm",
    "order",
    "recurrent",
    "reduce",
    "resize",
    "special",
    "view",
]
