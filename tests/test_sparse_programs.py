"""Random programs of sparse tensors against the same programs of dense ones; what they make keeps its invariants."""

import random

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the programs use what PyTorch has not for all layouts")


def start(torch, rng):
    """A tensor with up to three sparse dimensions and one dense one, of which a size may be zero."""
    sparse, dense = rng.choice([1, 2, 2, 3]), rng.choice([0, 0, 1])
    shape = [rng.randint(0 if rng.random() < 0.05 else 1, 4) for _ in range(sparse + dense)]
    count = rng.randint(0, 6) if all(shape[:sparse]) else 0
    index = torch.stack([torch.randint(0, max(n, 1), (count,)) for n in shape[:sparse]])
    made = torch.sparse_coo_tensor(index, torch.randn(count, *shape[sparse:], dtype=torch.float64), shape)
    return made.coalesce() if rng.random() < 0.4 else made


# Steps for sparse and dense tensors alike. `d` is a dimension, `k` an index in it, `e` dense and of the shape, `m` a matrix.
STEPS = {
    "squared": lambda t, x, d, k, e, m: x * x,
    "times dense": lambda t, x, d, k, e, m: x * e,
    "added": lambda t, x, d, k, e, m: x + x * 2,
    "subtracted": lambda t, x, d, k, e, m: x * 3 - x,
    "negated": lambda t, x, d, k, e, m: -x,
    "halved": lambda t, x, d, k, e, m: x / 2,
    "power": lambda t, x, d, k, e, m: x**2,
    "sin": lambda t, x, d, k, e, m: x.sin(),
    "clone": lambda t, x, d, k, e, m: x.clone(),
    "sum": lambda t, x, d, k, e, m: x.sum(d),
    "sum, kept": lambda t, x, d, k, e, m: x.sum(d, keepdim=True),
    "transposed": lambda t, x, d, k, e, m: x.transpose(0, d),
    "select": lambda t, x, d, k, e, m: x.select(d, k),
    "index_select": lambda t, x, d, k, e, m: x.index_select(d, t.arange(5) * (k + 1) % x.shape[d]),
    "no index": lambda t, x, d, k, e, m: x.index_select(d, t.arange(0)),
    "unsqueezed": lambda t, x, d, k, e, m: x.unsqueeze(d),
    "squeezed": lambda t, x, d, k, e, m: x.squeeze(),
    "cat": lambda t, x, d, k, e, m: t.cat([x, x * 2], d),
    "stack": lambda t, x, d, k, e, m: t.stack([x, x * 2], d),
    "narrow": lambda t, x, d, k, e, m: x.narrow_copy(d, k, x.shape[d] - k),
    "product": lambda t, x, d, k, e, m: x @ m,
    "sparse product": lambda t, x, d, k, e, m: x @ x.t(),
    "csr": lambda t, x, d, k, e, m: x.to_sparse_csr() if x.layout is not t.strided else x,
    "csc": lambda t, x, d, k, e, m: x.to_sparse_csc() if x.layout is not t.strided else x,
    "coo": lambda t, x, d, k, e, m: x.to_sparse() if x.layout is not t.strided else x,
    "coalesced": lambda t, x, d, k, e, m: x.coalesce() if x.is_sparse else x,
}


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(torch, seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    invariants = __import__(f"{torch.__name__}.sparse._invariants", fromlist=["_invariants"])
    steps = 0
    for _ in range(40):
        s = start(torch, rng)
        d = s.to_dense()
        for _ in range(4):
            if s.layout is torch.strided or s.dim() == 0:
                break
            name = rng.choice(list(STEPS))
            dim = rng.randrange(s.dim())
            k = rng.randrange(max(s.shape[dim], 1))
            others = torch.randn(s.shape, dtype=s.dtype), torch.randn(s.shape[-1], 2, dtype=s.dtype)
            try:
                made = STEPS[name](torch, s, dim, k, *others)
            except (RuntimeError, IndexError, ZeroDivisionError):
                continue  # not for this layout, rank or size
            s, d = made, STEPS[name](torch, d, dim, k, *others)
            plain = s.to_dense()
            assert s.shape == plain.shape == d.shape and torch.allclose(plain, d), (name, seed)
            if s.is_sparse:
                invariants.check_coo(s._indices(), s._values(), s.shape, s.is_coalesced())
            elif s.layout is not torch.strided:
                invariants.check_compressed(s.layout, s._pointers, s._plain, s._value, s.shape)
            steps += 1
    assert steps > 40
