"""`SobolEngine`: points of a Sobol sequence, which fill the unit cube more evenly than random ones.

Source: S. Joe and F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM J. Sci. Comput. 30
(2008), 2635-2654. Scrambling: J. Matousek, On the L2-discrepancy for anchored boxes, J. Complexity 14 (1998), 527-556.
"""

from __future__ import annotations

from . import _C
from ._C import Tensor, dtype, ops
from ._sobol_directions import DIMENSIONS, initial_numbers

__all__ = ["SobolEngine"]


def _directions(dimension: int, bits: int) -> Tensor:
    """The direction numbers v_1 to v_bits of each dimension as integers below 2^bits."""
    rows = [[1 << (bits - j) for j in range(1, bits + 1)]]
    for degree, coefficients, m in initial_numbers(dimension):
        v = [number << (bits - j) for j, number in enumerate(m[:bits], 1)]
        for j in range(degree, bits):
            next_v = v[j - degree] ^ (v[j - degree] >> degree)
            for k in range(1, degree):
                if coefficients >> (degree - 1 - k) & 1:
                    next_v ^= v[j - k]
            v.append(next_v)
        rows.append(v)
    return _C.tensor(rows, dtype=_C.int64, device="cpu")


class SobolEngine:
    """Draws the points of a Sobol sequence in order, on the CPU.

    Args:
        dimension (int): of the points, from 1 to `MAXDIM`.
        scramble (bool): scrambles the sequence at random: a linear matrix scramble and a digital shift.
        seed (int, optional): of the scrambling. Default: one of the system's.

    Raises:
        ValueError: a dimension out of range.

    The points are multiples of 2^-30. Up to 2^30 of them can be drawn.
    """

    MAXBIT = 30
    MAXDIM = DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _directions(dimension, self.MAXBIT)
        self.shift = ops["zeros"](dimension, dtype=_C.int64, device="cpu")
        self.num_generated = 0
        if scramble:
            self._scramble()

    def _scramble(self) -> None:
        generator = None if self.seed is None else _C.Generator().manual_seed(self.seed)
        d, n = self.dimension, self.MAXBIT

        def coins(*shape):
            return ops["randint"](0, 2, shape, dtype=_C.int64, device="cpu", generator=generator)

        powers = 2 ** ops["arange"](n - 1, -1, -1, dtype=_C.int64, device="cpu")
        self.shift = (coins(d, n) * powers.flip(0)).sum(-1)
        # Rows and columns are digits, the most significant first: digit i of a scrambled number depends on digits up to i.
        matrix = coins(d, n, n).tril(-1) + ops["eye"](n, dtype=_C.int64, device="cpu")
        digits = self.sobolstate.unsqueeze(-1).bitwise_and(powers) != 0
        # Sums of at most 30 ones are exact in float32.
        scrambled = digits.to(_C.float32) @ matrix.to(_C.float32).mT
        self.sobolstate = (scrambled.to(_C.int64) % 2 * powers).sum(-1)

    def _points(self, first: int, n: int) -> Tensor:
        """Points `first` to `first + n - 1` as integers."""
        if first + n > 1 << self.MAXBIT:
            raise ValueError(f"SobolEngine: a sequence has 2^{self.MAXBIT} points; expected no more, got {first + n}")
        index = ops["arange"](first, first + n, dtype=_C.int64, device="cpu")
        gray = (index ^ (index >> 1)).unsqueeze(-1)
        points = self.shift.expand(n, self.dimension)
        for bit in range(max(first + n - 1, 1).bit_length()):
            points = points ^ (self.sobolstate[:, bit] * (gray >> bit & 1))
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """The next `n` points, as the rows of a matrix.

        Args:
            out (Tensor, optional): resized and filled with them.
            dtype (dtype, optional): of the result. Default: the default dtype.

        Raises:
            ValueError: the sequence ends before.
        """
        made = self._points(self.num_generated, n).to(dtype or _C.get_default_dtype()) * 2.0**-self.MAXBIT
        self.num_generated += n
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """The next `2^m` points, where the sequence has a power of two of them thereafter: then they are balanced.

        Raises:
            ValueError: the number of points after the call would be no power of two.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point. Returns the engine."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips `n` points. Returns the engine."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        fields = [f"dimension={self.dimension}"]
        if self.scramble:
            fields.append("scramble=True")
        if self.seed is not None:
            fields.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(fields)})"
