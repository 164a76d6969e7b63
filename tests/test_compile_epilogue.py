"""Products with an epilogue: the elementwise steps over a product run in its kernel, and nothing shows it."""

import warnings

import pytest
from test_compile import alike, nothing_is_compiled, steps, trail  # noqa: F401

PASSES = {"all": True, "alone": {"passes": ["epilogue"]}, "with fuse": {"passes": ["fuse", "epilogue"]}}


# Functions of x (5, 6, 8), a weight (8, 7), a bias (7) and a state (30, 7), and how many products take an epilogue.
PROGRAMS = {
    "bias by column": (lambda torch, x, w, b, s: ((x[0] @ w + b) * 2).relu(), 1),
    "added": (lambda torch, x, w, b, s: torch.addmm(b, x[0], w).tanh() - 1, 1),
    "batched": (lambda torch, x, w, b, s: torch.bmm(x, w.expand(5, 8, 7)).exp() * b, 1),
    "batched and added": (lambda torch, x, w, b, s: torch.baddbmm(b, x, w.expand(5, 8, 7), beta=0.5) + x[:, :1, :7], 1),
    "added along a batch of two factors": (
        lambda torch, x, w, b, s: torch.baddbmm(b[:6], x, x.transpose(1, 2)).relu() * 2,
        1,
    ),
    "broadcast along the batch": (lambda torch, x, w, b, s: torch.bmm(x, w.expand(5, 8, 7)) * s[:6] + s[7], 1),
    "linear of three dimensions": (
        lambda torch, x, w, b, s: torch.nn.functional.gelu(torch.nn.functional.linear(x, w.t(), b)),
        1,
    ),
    "strided": (lambda torch, x, w, b, s: (x[1] @ w).sigmoid() * s.t()[:, 3:9].t() + s[::5], 1),
    "one element broadcast": (lambda torch, x, w, b, s: x[1] @ w * s[2, 3] + b[:1], 1),
    "kept": (lambda torch, x, w, b, s: (lambda h: (h, h.relu(), h * 2 + s[:6]))(x[2] @ w), 1),
    "kept by a view": (lambda torch, x, w, b, s: (lambda h: (h.relu() + 1, h.t()))(x[2] @ w), 1),
    "read after it is overwritten": (
        lambda torch, x, w, b, s: (lambda h: (h.relu(), h > 0, (h < 0) & (h > -1)))(x[0] @ w),
        1,
    ),
    "in place": (lambda torch, x, w, b, s: (x[0] @ w).relu_().mul_(b), 1),
    "through its rows": (lambda torch, x, w, b, s: (lambda h: h * h[0] + h)(x[0] @ w), 0),
    "through its transpose": (lambda torch, x, w, b, s: (lambda h: h * h.t())(x[0, :, :6] @ w[:6, :6]), 0),
    "through another shape": (lambda torch, x, w, b, s: (lambda h: h.view(7, 6) * 2 + h.view(7, 6))(x[0] @ w), 1),
    "reduced": (lambda torch, x, w, b, s: (x[0] @ w).relu().sum(0), 1),
    "two products": (lambda torch, x, w, b, s: (x[0] @ w).relu() + (x[1] @ w).exp(), 1),
    "a chain of products": (lambda torch, x, w, b, s: ((x[0] @ w).relu() @ w.t()).tanh(), 2),
    "a write between": (lambda torch, x, w, b, s: (lambda h: (s.add_(1), h * b)[1])(x[0] @ w), 1),
    "a write to what is read": (lambda torch, x, w, b, s: (lambda h: (s.add_(1), h * s[:6])[1])(x[0] @ w), 0),
    "a write to its operand between": (
        lambda torch, x, w, b, s: (lambda h: (s.add_(0), h * s[:6]))(s[:6, :7] @ s[:7, :7]),
        0,
    ),
    "the state": (lambda torch, x, w, b, s: (s[:6].add_(x[0] @ w), s.sum(), x[0, :1] @ w), 0),
    "cast": (lambda torch, x, w, b, s: (x[0] @ w).double() * 2 + s[:6], 1),
    "narrow": (lambda torch, x, w, b, s: (x[0] @ w) > b, 1),
    "large angles": (lambda torch, x, w, b, s: (x[0] @ w * 1e6).sin() + (x[0] @ w * 1e7).cos() * b, None),
    "no terms": (lambda torch, x, w, b, s: (x[0, :, :0] @ w[:0]) + b, 1),
    "no rows": (lambda torch, x, w, b, s: torch.addmm(b, x[0, :0], w).relu(), 1),
    "one row": (lambda torch, x, w, b, s: (x[0, :1] @ w + b).relu(), 1),
    "one column": (lambda torch, x, w, b, s: (x[0] @ w[:, :1] + b).relu(), None),
}


def example(torch, program, dtype):
    def make():
        torch.manual_seed(3)
        make = lambda *shape: torch.randn(shape).mul(3).to(getattr(torch, dtype))  # noqa: E731
        w, b, s = make(8, 7), make(7), make(30, 7)
        return lambda x: program(torch, x, w, b, s), lambda i: (make(5, 6, 8),), lambda: [w, b, s]

    return make


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(torch, name, dtype, passes):
    make = example(torch, PROGRAMS[name][0], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, _ = trail(torch, make, 6, False)
        ours, roads = trail(torch, make, 6, PASSES[passes])
    assert roads[-1] == "replay"
    for i, (a, b) in enumerate(zip(plain, ours, strict=True)):
        assert a == b, f"call {i} differs, by the road {roads[i]}"


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "uint8", "complex64"])
def test_dtypes(torch, dtype):
    program = lambda torch, x, w, b, s: ((x[0] @ w + b) * 3 - s[:6]) * (x[1] @ w)  # noqa: E731
    alike(torch, example(torch, program, dtype), 5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_how_many_are_joined(torch, name):
    program, expected = PROGRAMS[name]
    if expected is None:
        pytest.skip("as many as the rules allow")
    f, arguments, _ = example(torch, program, "float32")()
    found = steps(torch, f, *arguments(0))
    assert sum("+" in s and "mm+" in s for s in found) == expected, found


CONVOLUTIONS = {
    "plain": ((6, 3, 9, 10), (8, 3, 3, 3), {"padding": 1}),
    "few channels": ((3, 4, 12, 9), (2, 4, 3, 3), {}),
    "groups": ((5, 6, 8, 8), (8, 3, 3, 3), {"groups": 2, "stride": 2}),
    "one dimension": ((4, 3, 50), (5, 3, 4), {"dilation": 2}),
    "three dimensions": ((2, 3, 5, 6, 7), (5, 3, 2, 2, 2), {}),
    "large images": ((5, 4, 70, 80), (24, 4, 3, 3), {"padding": 1}),
    "many large images": ((70, 4, 30, 30), (8, 2, 3, 3), {"groups": 2}),
    "many with few channels": ((90, 3, 40, 40), (3, 3, 3, 3), {"padding": 1}),
    "no images": ((0, 3, 9, 9), (8, 3, 3, 3), {}),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(torch, name, dtype):
    shape, kernel, options = CONVOLUTIONS[name]
    F = torch.nn.functional
    convolve = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(shape)]
    dtype = getattr(torch, dtype)
    torch.manual_seed(2)
    w, b = torch.randn(kernel).to(dtype), torch.randn(kernel[0]).to(dtype)
    scale = torch.randn(kernel[0], *[1] * (len(shape) - 2)).to(dtype)
    f = lambda x: (lambda h: ((h * scale).relu() + 1, h > 0))(convolve(x, w, b, **options))  # noqa: E731
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            torch.compiler.reset()
            fast = torch.compile(f)
            for _ in range(5):
                x = torch.randn(shape).to(dtype)
                got, expected = fast(x), f(x)
                assert all(torch.equal(a, e) for a, e in zip(got, expected, strict=True))
            assert torch.compiler.explain(fast, x).steps[0] == ["_convolution+fused(mul, relu, add, gt)"]
    finally:
        torch.set_num_threads(before)


def test_transposed_convolutions_and_other_formats(torch):
    F = torch.nn.functional
    torch.manual_seed(2)
    w = torch.randn(3, 6, 3, 3)
    for step, memory in ((1, torch.contiguous_format), (2, torch.contiguous_format), (1, torch.channels_last)):
        x = torch.randn(4, 3, 7, 8).contiguous(memory_format=memory)
        f = lambda x, step=step: F.conv_transpose2d(x, w, stride=step).relu() * 2  # noqa: E731
        fast = torch.compile(f)
        for _ in range(5):
            assert torch.equal(fast(x), f(x))


def test_a_gradient_that_is_copied_transposed_is_computed_so(torch):
    """The gradient of a linear layer's weight takes over the memory of the product."""

    def make():
        torch.manual_seed(1)
        net = torch.nn.Linear(9, 5)

        def step(x):
            net.zero_grad()
            (net(x) * net(x)).sum().backward()
            return net.weight.grad.clone()

        return step, lambda i: (torch.randn(12, 9),), lambda: list(net.parameters())

    alike(torch, make, 6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_the_order_of_a_product_in_memory_is_not_seen(torch, dtype):
    torch.manual_seed(0)
    f = lambda a, b: torch.empty_strided((b.size(1), a.size(0)), (a.size(0), 1), dtype=a.dtype).copy_((a @ b).t())  # noqa: E731
    for m, k, n in ((1, 3, 4), (5, 1, 1), (4, 0, 3), (64, 32, 32), (33, 700, 17), (130, 40, 300), (0, 3, 2)):
        a, b = (torch.randn(m, k) * 9).to(getattr(torch, dtype)), (torch.randn(k, n) * 9).to(getattr(torch, dtype))
        for left, right in ((a, b), (a.t().contiguous().t(), b), (a, b.t().contiguous().t())):
            fast = torch.compile(f)
            for _ in range(5):
                got = fast(left, right)
            expected = f(left, right)
            assert got.stride() == expected.stride() and torch.equal(got, expected)


def test_the_listing_shows_it(torch):
    w = torch.randn(4, 3)
    fast = torch.compile(lambda x: torch.relu(x @ w) * 2)
    for _ in range(4):
        fast(torch.ones(2, 4))
    text = str(torch.compiler.explain(fast, torch.ones(2, 4)))
    assert "mm+fused(relu, mul):\n" in text
    assert torch.compiler.explain(fast, torch.ones(2, 4)).steps[0] == ["mm+fused(relu, mul)"]
    assert steps(torch, lambda x: torch.relu(x @ w) * 2, torch.ones(2, 4), options={"passes": ["fuse"]}) == [
        "mm",
        "fused(relu, mul)",
    ]


@pytest.mark.parametrize("shape", [(1000, 96, 300), (300, 96, 1000), (3, 700, 40, 300), (2500, 600, 64)])
def test_threads_and_blocks_change_nothing(torch, shape):
    """Large products are split among threads and into blocks; the bits are those of the plain call."""
    *batch, m, k, n = shape
    torch.manual_seed(0)
    x, w, row = torch.randn(*batch, m, k), torch.randn(*batch, k, n), torch.randn(n)
    other = torch.randn(*batch, n, m).transpose(-1, -2)

    def f(x):
        h = x @ w
        return (h + row).tanh() * other, (h > 0) & (other > row), h.exp() - h if m < 500 else None

    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.compiler.reset()
            fast = torch.compile(f)
            for _ in range(5):
                got = fast(x)
            assert fast._compiled_state.road == "replay"
            for a, b in zip(f(x), got, strict=True):
                assert a is b or torch.equal(a, b)
    finally:
        torch.set_num_threads(before)


def test_backward_keeps_what_it_reads(torch):
    """Of tanh the result, of gelu its argument, which the product then stores."""

    def make():
        torch.manual_seed(1)
        nn = torch.nn
        net = nn.Sequential(nn.Linear(6, 20), nn.GELU(), nn.Linear(20, 9), nn.Tanh(), nn.Linear(9, 4), nn.ReLU())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, lambda i: (torch.randn(12, 6),), lambda: list(net.parameters())

    alike(torch, make, 7)


def test_an_operand_of_another_form_runs_as_it_was(torch):
    w = torch.randn(4, 3)
    held = torch.nn.Parameter(torch.randn(3), requires_grad=False)
    fast = torch.compile(lambda x: torch.relu(x @ w + held))
    x = torch.randn(2, 4)
    for _ in range(5):
        fast(x)
    held.data = torch.randn(6)[::2]
    assert torch.equal(fast(x), torch.relu(x @ w + held))
