"""Results that are computed again: where that lowers the peak of memory, and nothing shows it."""

import warnings

import pytest
from test_compile import nothing_is_compiled, steps, trail  # noqa: F401

PASSES = {"all": True, "alone": {"passes": ["recompute"]}, "with fuse": {"passes": ["fuse", "recompute"]}}


def residual(torch):
    """A training step of four residual blocks over 512 rows."""
    nn = torch.nn
    torch.manual_seed(1)
    blocks = nn.ModuleList(
        nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4)
    )
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        for block in blocks:
            x = x + block(x)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda i: (torch.randn(512, 64),), lambda: list(blocks.parameters())


def heads(torch):
    """Copies of transposed heads, and products that read them through views."""
    torch.manual_seed(2)
    w = [torch.randn(64, 64).mul(0.1).requires_grad_() for _ in range(3)]

    def step(x):
        for v in w:
            v.grad = None
            h = (x @ v).view(8, 64, 4, 16).transpose(1, 2).tanh()
            x = x + h.transpose(1, 2).reshape(512, 64) @ v.t()
        loss = x.sin().sum()
        loss.backward()
        return loss

    return step, lambda i: (torch.randn(512, 64),), lambda: [v.grad for v in w] + w


def chain(torch, early):
    """A long chain after a result that is read at its end, of an argument that `early` may change in between."""
    torch.manual_seed(3)
    state, wide = torch.randn(256, 256), torch.randn(256, 1024) * 0.1

    def call(x):
        first = x @ wide[:, :256]
        kept = early(first, state)
        y = (first @ wide).clamp(-1, 1) @ wide.t()
        return y * kept + first

    return call, lambda i: (torch.randn(256, 256),), lambda: [state]


def written(first, state):
    kept = first.exp()
    first.mul_(0.5)
    return kept


def state_written(first, state):
    kept = state.sin()
    state.add_(0.25)
    return kept


def kept_written(first, state):
    kept = first.exp()
    kept[0] = 7
    return kept


def drawn(first, state):
    return first.bernoulli(0.5)


PROGRAMS = {
    "residual blocks": residual,
    "heads": heads,
    "chain": lambda torch: chain(torch, lambda first, state: first.exp()),
    "chain through a view": lambda torch: chain(torch, lambda first, state: first.exp().t()[:, :]),
    "its argument is written": lambda torch: chain(torch, written),
    "the state is written": lambda torch: chain(torch, state_written),
    "the result is written": lambda torch: chain(torch, kept_written),
    "drawn": lambda torch: chain(torch, drawn),
}


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(torch, name, passes):
    make = lambda: PROGRAMS[name](torch)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, _ = trail(torch, make, 7, False)
        ours, roads = trail(torch, make, 7, PASSES[passes])
    assert roads[-1] == "replay"
    for i, (a, b) in enumerate(zip(plain, ours, strict=True)):
        assert a == b, f"call {i} differs, by the road {roads[i]}"


@pytest.mark.parametrize(
    ("name", "op", "count"),
    [
        ("chain", "exp", 2),
        ("chain through a view", "exp", 2),
        ("its argument is written", "exp", 1),
        ("the state is written", "sin", 1),
        ("the result is written", "exp", 1),
        ("drawn", "bernoulli", 1),
    ],
)
def test_what_is_computed_again(torch, name, op, count):
    f, arguments, _ = PROGRAMS[name](torch)
    found = steps(torch, f, *arguments(0), options={"passes": ["recompute"]})
    assert sum(op in s for s in found) == count, found


def test_activations_of_residual_blocks(torch):
    f, arguments, _ = residual(torch)
    found = steps(torch, f, *arguments(0))
    assert sum("nn.functional.gelu" in s for s in found) == 7, found
    assert sum("native_layer_norm" in s for s in found) > 4, found


def test_small_results_stay(torch):
    def call(x):
        kept = x.exp()
        y = (x @ wide).clamp(-1, 1) @ wide.t()
        return y * kept + x

    wide = torch.randn(16, 1024)
    assert sum("exp" in s for s in steps(torch, call, torch.randn(16, 16))) == 1


def test_one_run_after_another(torch):
    f, arguments, _ = PROGRAMS["chain"](torch)
    fast = torch.compile(f)
    x = arguments(0)[0]
    expected = f(x)
    for _ in range(6):
        assert torch.equal(fast(x), expected)
    assert torch.equal(fast(x + 1), f(x + 1))
