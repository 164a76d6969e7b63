"""The LKJ distribution of correlation matrices."""

import math

import rustgrad as torch

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of `dim` by `dim` correlation matrices, of density proportional to `det(L L^T)^(concentration - 1)`.

    With concentration one, correlation matrices are uniform. Samples by the onion method (D. Lewandowski, D. Kurowicka
    and H. Joe, "Generating random correlation matrices based on vines and extended onion method", 2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _params = {"dim": 0, "concentration": 0}

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Squared lengths of the rows below the diagonal; the first row has none.
        rows = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        rows = torch.cat([rows.new_zeros(1), rows])
        self._beta = Beta(rows + 0.5, (self.concentration + (dim - 2) / 2).unsqueeze(-1) - rows / 2)
        super().__init__(self.concentration.size(), torch.Size((dim, dim)), validate_args)

    def _expand_rest(self, new, batch_shape):
        new._beta = self._beta.expand(batch_shape + (self.dim,))

    def sample(self, sample_shape=()):
        with torch.no_grad():
            lengths = self._beta.sample(sample_shape).unsqueeze(-1)
            z = torch.randn(self._extended_shape(sample_shape), dtype=lengths.dtype, device=lengths.device).tril(-1)
            norm = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
            w = lengths.sqrt() * z / norm.masked_fill(norm == 0, 1)
            tiny = torch.finfo(w.dtype).tiny
            return w + (1 - w.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value):
        """The density of the factor: the power of the determinant times the Jacobian of `L L^T`, `prod L_ii^(dim - i)`."""
        if self._validate_args:
            self._validate_sample(value)
        below = self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        rest = torch.arange(below - 1, -1, -1, dtype=value.dtype, device=value.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + rest
        alpha = self.concentration + below / 2
        scale = below / 2 * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, below) - below * torch.lgamma(alpha)
        return (power * diagonal.log()).sum(-1) - scale
