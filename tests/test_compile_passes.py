"""The passes of a plan: each alone, none and all show what the plain call shows, and fused steps are fewer."""

import warnings

import pytest
from test_compile import alike, nothing_is_compiled, steps, trail  # noqa: F401

PASSES = {
    "all": None,
    "none": [],
    "dead_code": ["dead_code"],
    "common": ["common"],
    "fuse": ["fuse"],
    "epilogue": ["epilogue"],
    "recompute": ["recompute"],
    "prepare": ["prepare"],
}


def pair(torch, shape=(6, 70), dtype="float32"):
    """Two tensors, with other values each time."""
    make = lambda: (torch.randn(shape) * 3).to(getattr(torch, dtype))  # noqa: E731
    return make(), make()


# Functions of two tensors (6, 70), and of the state that they change.
PROGRAMS = {
    "chain": lambda torch, x, y, s: ((x * 2 + 1).tanh() - y) * 0.5 + y * y,
    "results kept": lambda torch, x, y, s: (lambda a: (a, a.exp(), (a + y).sin()))(x * y),
    "broadcast": lambda torch, x, y, s: (x * y[0] + y[:, :1]) * y[2, 3] - 1,
    "strided": lambda torch, x, y, s: (x[:, ::2] * y[:, 1::2] + x[:, 35:]).sigmoid() * 3,
    "transposed": lambda torch, x, y, s: (x.t() * 2 + y.t()) - y.reshape(70, 6),
    "order of memory": lambda torch, x, y, s: (x.t() * 2 + y.t()).exp(),
    "mixed dtypes": lambda torch, x, y, s: (x.to(torch.float16) * y + x.double()).to(torch.bfloat16) * 2 + x,
    "half": lambda torch, x, y, s: (x.bfloat16() * 1.1 + y.bfloat16()).tanh() * y.bfloat16() - 0.3,
    "integers": lambda torch, x, y, s: (x.to(torch.int32) * 3 + y.to(torch.uint8)) // 2 ** (y.to(torch.int64) % 3),
    "narrow": lambda torch, x, y, s: (x.to(torch.int8) * 100 + 90) * y.to(torch.int8) > 3,
    "bools": lambda torch, x, y, s: ((x > y) & ~(x < 0)) | (x == y).logical_not() ^ (y >= 1),
    "where": lambda torch, x, y, s: torch.where(x > y, x * 2, y.clamp(-1, 1)) + torch.where(x < 0, 0.0, x),
    "complex": lambda torch, x, y, s: ((torch.complex(x, y) * 2j + 1) * torch.complex(y, x)).abs() + 1,
    "fresh in place": lambda torch, x, y, s: (lambda a: (a.mul_(2).add_(y).relu_(), a * 3)[1])(x + y),
    "result written": lambda torch, x, y, s: (x + y).mul_(2).add_(1),
    "in place": lambda torch, x, y, s: s.mul_(0.9).add_(x * 0.1).clamp_(-2, 2),
    "read before and after": lambda torch, x, y, s: (s * 2, s.add_(x), s * 2 + y),
    "in place through views": lambda torch, x, y, s: (s[1:].mul_(x[1:] + 1), s[:-1].add_(y[1:]), s + 1),
    "in place from a view": lambda torch, x, y, s: s.t().add_(s[0].clone().sum() + x.t()),
    "argument written": lambda torch, x, y, s: (x.add_(y), y.mul_(x) + 1),
    "row written": lambda torch, x, y, s: (s[2].copy_(x[0] * 2), s * 2 + x, s[2].zero_(), s + y),
    "between products": lambda torch, x, y, s: torch.relu((x * 2) @ (y + 1).t()).sum() * (x - y).exp(),
    "twice the same": lambda torch, x, y, s: (x * 2 + y).sin() + (x * 2 + y).cos() + x.t().sum(0) + x.t().sum(0),
    "the same, returned": lambda torch, x, y, s: (x * 2, x * 2, x.t(), x.t()),
    "dead": lambda torch, x, y, s: (x.exp(), x.t(), y.mul(2).add_(1), x + 1)[-1],
    "aliases": lambda torch, x, y, s: (lambda a: (a.detach(), a.view(-1)[::7], a * 2))(x * y + 1),
    "overflow": lambda torch, x, y, s: (x * 1e30).exp() * 0 + (x * 1e8).sin() + (x - x) / 0,
    "one element": lambda torch, x, y, s: x.sum() * 2 + y.mean().exp() - 1,
    "long": lambda torch, x, y, s: sum(((x + i) * y for i in range(40)), start=x),
    "in inference mode": lambda torch, x, y, s: torch.inference_mode()(lambda: (x * 2 + y).tanh() * 2)().clone(),
}


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_under_passes(torch, name, passes):
    program = PROGRAMS[name]

    def make():
        state = torch.randn(6, 70)

        def f(x, y):
            return program(torch, x, y, state)

        return f, lambda i: pair(torch), lambda: [state]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, _ = trail(torch, make, 7, False)
        ours, roads = trail(torch, make, 7, {"passes": PASSES[passes]} if PASSES[passes] is not None else True)
    for i, (a, b) in enumerate(zip(plain, ours, strict=True)):
        assert a == b, f"call {i} differs, by the road {roads[i]}"


@pytest.mark.parametrize(
    "shape", [(0,), (3, 0, 2), (), (1,), (1, 1), (63,), (64,), (65,), (2049,), (5, 513), (300_001,)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
def test_shapes(torch, shape, dtype):
    def make():
        def f(x, y):
            z = (x * 2 + y) * x
            return z, (z - 1) * (y + x), z > y

        return f, lambda i: pair(torch, shape, dtype), lambda: []

    alike(torch, make, 5)


def test_threads_change_nothing(torch):
    before = torch.get_num_threads()

    def make():
        def f(x, y):
            return ((x * 1e7).sin() * y + (x * 3).cos()).exp() - x

        return f, lambda i: pair(torch, (333_333,)), lambda: []

    seen = []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            torch.compiler.reset()
            plain, _ = trail(torch, make, 5, False)
            ours, roads = trail(torch, make, 5, True)
            assert plain == ours and roads[-1] == "replay"
            seen.append(ours)
    finally:
        torch.set_num_threads(before)
    assert seen[0] == seen[1] == seen[2]


def test_a_chain_is_one_step(torch):
    x, y = pair(torch)
    assert steps(torch, lambda x, y: ((x * 2 + 1).tanh() - y) * 0.5, x, y) == ["fused(mul, add, tanh, sub, mul)"]


def test_casts_are_part_of_a_chain(torch):
    x, y = pair(torch)
    assert steps(torch, lambda x, y: ((x.double() * 2).half() + y).int() - 1, x, y) == [
        "fused(_to_copy, mul, _to_copy, add, _to_copy, sub)"
    ]
    assert steps(torch, lambda x, y: x.double(), x, y) == ["_to_copy"]


@pytest.mark.parametrize("target", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("source", ["bool", "uint8", "int32", "float16", "bfloat16", "float32", "float64"])
def test_casts(torch, source, target):
    """Out of range too, of strided tensors and of what a rule has computed."""
    source, target = getattr(torch, source), getattr(torch, target)

    def make():
        def f(x):
            a = x + x
            b = a.to(target)
            return b, b * 2, b.to(source), x.t().to(target) + b.t(), a.t().to(target).t()[1:]

        values = torch.tensor([[0.0, -1.5, 300.7, 1e10, float("nan")], [float("inf"), -3e38, 70000, 0.4, -0.0]])
        return f, lambda i: ((values * (i + 1)).to(source),), lambda: []

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, _ = trail(torch, make, 5, False)
        ours, roads = trail(torch, make, 5, True)
    assert plain == ours and roads[-1] == "replay"


def test_views_and_other_ops_between_do_not_part_a_chain(torch):
    x, y = pair(torch)

    def f(x, y):
        a = x * 2
        b = y.t().contiguous()
        c = a + 1
        return c * a, b

    assert "fused(mul, add, mul)" in steps(torch, f, x, y)


def test_a_write_between_parts_a_chain(torch):
    x, y = pair(torch)
    state = torch.zeros(6, 70)

    def f(x):
        a = state * 2
        state[0].fill_(1)
        return a + state

    assert not any("fused" in s for s in steps(torch, f, x))


def test_dead_steps_are_left_out(torch):
    x, _ = pair(torch)
    assert steps(torch, lambda x: (x.exp() * 2, x + 1)[1], x) == ["add"]


def test_common_steps_are_computed_once(torch):
    x, y = pair(torch)
    seen = steps(torch, lambda x, y: (x @ y.t()) + (x.t() @ y).sum() + (y.t() @ x).sum() + (x @ y.t()), x, y)
    assert seen.count("t") == 2


def test_the_listing_shows_groups(torch):
    fast = torch.compile(lambda x: (x * 2 + 1) * x)
    x = torch.randn(5)
    for _ in range(4):
        fast(x)
    text = str(torch.compiler.explain(fast, x))
    assert "1 fused(mul, add, mul)" in text
    assert "%3 = fused(mul, add, mul):" in text
    assert "        %1 = mul(%0, Int(2))" in text


def test_chosen_passes(torch):
    with pytest.raises(ValueError, match="unknown passes"):
        torch.compile(lambda x: x, options={"passes": ["fuse", "magic"]})
    x, _ = pair(torch)
    fast = torch.compile(lambda x: (x.exp(), x * 2 + 1)[1], options={"passes": []})
    for _ in range(4):
        fast(x)
    assert torch.compiler.explain(fast, x).steps[0] == ["exp", "mul", "add"]


def test_nofuse_in_the_environment(torch, monkeypatch):
    monkeypatch.setenv("RUSTGRAD_COMPILE", "nofuse")
    x, _ = pair(torch)
    assert steps(torch, lambda x: (x.exp(), x * 2 + 1)[1], x) == ["mul", "add"]


def test_an_operand_without_writable_memory_raises_as_ever(torch):
    np = pytest.importorskip("numpy")
    array = np.ones(8, np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frozen = torch.from_numpy(array)
    state, free = frozen, torch.zeros(8)
    plain = lambda x: (free.add_(x), x * 2)  # noqa: E731
    fast = torch.compile(plain)
    x = torch.ones(8)
    for _ in range(5):
        fast(x)
    free.data = state
    for f in (plain, fast):
        with pytest.raises(RuntimeError, match="read-only"):
            f(x)


def test_arrays_of_another_library_that_share_memory(torch):
    np = pytest.importorskip("numpy")
    array = np.arange(16, dtype=np.float32)
    a, b = torch.from_numpy(array[:12]), torch.from_numpy(array[4:])

    def f(x):
        a.add_(x)
        c = b * 2
        a.mul_(0.5)
        return c + b

    fast = torch.compile(f)
    x = torch.ones(12)
    for _ in range(6):
        start = array.copy()
        expected = f(x).clone(), array.copy()
        array[:] = start
        got = fast(x)
        assert torch.equal(got, expected[0]) and (array == expected[1]).all()


def gpu(torch):
    from support import target

    if reason := target.gpu_reason():
        pytest.skip(reason)
    return torch.gpu


GPU_PROGRAMS = {
    "chain": (lambda torch, x, y, s: ((x * 2 + 1).tanh() - y) * 0.5 + y * y, 1),
    "results kept": (lambda torch, x, y, s: (lambda a: (a, a.exp(), (a + y).sin()))(x * y), 1),
    "broadcast": (lambda torch, x, y, s: (x * y[0] + y[:, :1]) * y[2, 3] - 1, 1),
    "strided": (lambda torch, x, y, s: (x[:, ::2] * y[:, 1::2] + x[:, 35:]).sigmoid() * 3, 1),
    "transposed": (lambda torch, x, y, s: (x.t() * 2 + y.t()).exp() - y.reshape(70, 6), 1),
    "where": (lambda torch, x, y, s: torch.where(x > y, x * 2, y.clamp(-1, 1)) + 1, 1),
    "in place": (lambda torch, x, y, s: s.mul_(0.9).add_(x * 0.1).clamp_(-2, 2), 1),
    "read before and after": (lambda torch, x, y, s: (s * 2, s.add_(x), s * 2 + y), 1),
    "half": (lambda torch, x, y, s: (x.half() * 2 + y.half()) * x, None),
    "integers": (lambda torch, x, y, s: (x.int() * 3 + y.int()) * 2 * (x.int() > 1), None),
    "long": (lambda torch, x, y, s: sum(((x + i) * y for i in range(20)), start=x), None),
}


@pytest.mark.parametrize("name", GPU_PROGRAMS)
def test_a_program_on_the_gpu(torch, name):
    """The values of the plain calls but for the rounding of contracted products; and fewer dispatches."""
    gpu(torch)
    program, most = GPU_PROGRAMS[name]
    runs = {}
    for fast in (False, True):
        torch.manual_seed(3)
        torch.compiler.reset()
        state = torch.randn(6, 70).gpu()

        def f(x, y, state=state):
            return program(torch, x, y, state)

        g = torch.compile(f) if fast else f
        seen = []
        for _ in range(6):
            x, y = (t.gpu() for t in pair(torch))
            before = torch.gpu.stats()["dispatches"]
            out = g(x, y)
            count = torch.gpu.stats()["dispatches"] - before
            seen.append(([t.cpu() for t in (out if isinstance(out, tuple) else (out,))], state.cpu(), count))
        runs[fast] = seen
        if fast:
            assert g._compiled_state.road == "replay"
    for (a, s, plain), (b, r, fused) in zip(runs[False], runs[True], strict=True):
        for expected, got in zip([*a, s], [*b, r], strict=True):
            assert expected.dtype == got.dtype and expected.stride() == got.stride()
            torch.testing.assert_close(got, expected, rtol=2e-6, atol=2e-6)
        last = plain, fused
    plain, fused = last
    assert fused < plain
    assert most is None or fused == most
