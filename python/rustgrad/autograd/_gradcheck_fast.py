"""The fast mode of `gradcheck`: one product `v^T J u` with random vectors instead of all elements of the Jacobian `J`.

The derivative along `u` comes from one central difference or one run of forward mode, the product with `v` from one
backward. Elements of `u` and `v` are positive, so that errors of one sign do not cancel, and have norm one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Generator, Tensor, rand, zeros_like
from ._engine import grad as autograd_grad


class Directions:
    """A random vector for each checked input and each output.

    Args:
        active (list): (number, tensor) of the inputs.
        outputs (list of Tensor): the real outputs.
    """

    def __init__(self, active: list[tuple[int, Tensor]], outputs: list[Tensor]) -> None:
        # A generator of its own: the check draws no numbers that the function would.
        generator = Generator().manual_seed(0)
        self.u = {i: self._draw(x, generator) for i, x in active}
        self.v = [self._draw(o, generator) for o in outputs]

    @staticmethod
    def _draw(like, generator):
        def values():
            drawn = rand(like.shape, generator=generator, dtype=like.real.dtype)
            return drawn.to(like.device)

        vector = values() + 1j * values() if like.is_complex() else values()
        return vector / vector.abs().square().sum().sqrt() if vector.numel() else vector

    def tolerance(self, atol: float, i: int, j: int) -> float:
        """`v^T A u`, where each element of `A` is the tolerance of an element of the Jacobian."""
        u, v = self.u[i], self.v[j]
        each = u.real.sum() + u.imag.sum() if u.is_complex() else u.sum()
        return atol * each.item() * v.sum().item()

    def numerical(self, difference: Callable[..., list[Tensor]], i: int, eps: float) -> list[Tensor]:
        """The products for an input and all outputs, by `difference(index, direction, eps)`."""
        return [(d * v.reshape(-1)).sum() for d, v in zip(difference(..., self.u[i] * eps, eps), self.v, strict=True)]

    def analytical(self, output: Tensor, j: int, inputs: list[tuple[int, Tensor]]) -> list[Tensor | None]:
        """The gradients of `v^T output` by each input; None where there is none."""
        tensors = [x for _, x in inputs]
        return list(autograd_grad(output, tensors, self.v[j], retain_graph=True, allow_unused=True))

    def along(self, i: int, x: Tensor, gradient: Tensor | None) -> Tensor:
        """The product of a gradient and the direction of its input."""
        g, u = zeros_like(x.detach()) if gradient is None else gradient.detach(), self.u[i]
        return (g.real * u.real + g.imag * u.imag).sum() if u.is_complex() else (g * u).sum()

    def forward(self, run: Callable[..., list[Tensor]], i: int) -> list[Any]:
        """The products for an input and all outputs, by `run(tangent)`."""
        return [(row * v.reshape(-1)).sum() for row, v in zip(run(self.u[i].clone()), self.v, strict=True)]
