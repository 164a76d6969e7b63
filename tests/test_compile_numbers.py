"""Numbers of compiled functions: arguments that differ from call to call, and values that are read of tensors and returned."""

import math
import sys
import threading
import warnings

import pytest
from support import target
from test_compile import alike, bits, stays_eager, trail

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")

FLOATS = (0.1, 0.2, -0.3, 2.0, 1.0, 0.0, -0.0, 0.5, math.inf, -math.inf, math.nan, 1e300, 5e-324, 3.0)
INTS = (1, 2, 3, -1, 0, 7, 2**31, 2**53 + 1, -(2**63), 2**63 - 1)


rg = None


@pytest.fixture(autouse=True)
def nothing_is_compiled(torch):
    global rg
    rg = torch
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def numbers(torch, f, values, plans=1, road="replay"):
    """Each call of `f(x, value)` is that of the plain function; the values share `plans` plans."""
    x = torch.tensor([[-2.0, -0.5, 0.0], [0.25, 1.5, 3.0]])
    g = torch.compile(f)
    roads = []
    for k in values:
        try:
            expected = bits(torch, f(x, k))
        except Exception as error:
            expected = type(error), str(error)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ours = bits(torch, g(x, k))
            except Exception as error:
                ours = type(error), str(error)
        roads.append(g._compiled_state.road)
        assert ours == expected, (k, roads)
    assert len(g._compiled_state.plans) == plans, (roads, g._compiled_state.missed)
    assert roads[-1] == road, roads
    return roads


PLACES = {
    "times": lambda x, k: x * k,
    "from the left": lambda x, k: k * x,
    "plus": lambda x, k: k + x,
    "minus": lambda x, k: x - k,
    "from": lambda x, k: k - x,
    "over": lambda x, k: x / k,
    "under": lambda x, k: k / x,
    "power": lambda x, k: x**k,
    "base": lambda x, k: k**x,
    "compared": lambda x, k: (x > k, k <= x, x == k),
    "in place": lambda x, k: x.clone().mul_(k).add_(k),
    "alpha": lambda x, k: x.add(x, alpha=k),
    "by name": lambda x, k: x.sub(other=x.exp(), alpha=k),
    "between constants": lambda x, k: x.clamp(min=-0.1, max=k),
    "both bounds": lambda x, k: x.clamp(-k, k),
    "lerp": lambda x, k: rg.lerp(x, x.exp(), k),
    "addcmul": lambda x, k: x.addcmul(x, x, value=k),
    "filled": lambda x, k: x.clone().fill_(k),
    "masked": lambda x, k: x.masked_fill(x > 0, k),
    "twice": lambda x, k: x * k + k,
    "returned": lambda x, k: (x * 2, k, [k], {"k": k}),
    "expression": lambda x, k: x * (1 - k) + k * 0.5,
    "negative": lambda x, k: x * -k + abs(k),
    "quotient": lambda x, k: x * (k / 3),
    "returned expression": lambda x, k: (x + 1, (1 - k) * k, -k),
    "chain": lambda x, k: ((x * 2 + 1).tanh() * k - 1).relu() + k,
}


@pytest.mark.parametrize("place", PLACES)
def test_a_float_is_read_anew(torch, place):
    f = PLACES[place]
    roads = numbers(torch, f, FLOATS)
    # An error is that of the function.
    raises = [place in ("filled", "masked") and k == 1e300 for k in FLOATS]
    assert all(road == "replay" or error for road, error in zip(roads[3:], raises[3:], strict=True)), roads


@pytest.mark.parametrize("place", sorted(PLACES.keys() - {"lerp", "masked", "filled"}))
def test_an_int_is_read_anew(torch, place):
    """Until arithmetic on it leaves 64 bits: then the function runs, or another plan is made."""
    f = PLACES[place]
    small = numbers(torch, f, [k for k in INTS if abs(k) < 2**40])
    assert small[3:] == ["replay"] * (len(small) - 3)
    x = torch.ones(2)
    g = torch.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (*INTS, 2**64, -(2**70), *INTS):
            answers = []
            for h in (f, g):
                try:
                    answers.append(bits(torch, h(x, k)))
                except Exception as error:
                    answers.append(type(error))
            assert answers[0] == answers[1], k


def test_floats_ints_and_bools_have_plans_of_their_own(torch):
    f = PLACES["times"]
    numbers(torch, f, [1.0, 2.0, 3.0, 1, 2, 3, True, True, True, 5.0, 7, True, False, False, False, False], plans=4)


def test_integers_keep_their_dtype(torch):
    g = torch.compile(lambda x, k: x * k)
    x = torch.arange(3)
    kinds = [g(x, k).dtype for k in (1, 2, 3, 4, 1.0, 2.0, 3.0, 4.0, 5)]
    assert kinds == [torch.int64] * 4 + [torch.float32] * 4 + [torch.int64]


def test_a_number_by_name(torch):
    g = torch.compile(lambda x, *, k=2.0: x * k)
    for i in range(6):
        assert g(torch.ones(1), k=i / 7).item() == pytest.approx(i / 7)
    assert g._compiled_state.road == "replay" and len(g._compiled_state.plans) == 1
    assert g(torch.ones(1)).item() == 2.0


# --- what asks for the value ---------------------------------------------------------------------
def test_a_comparison_is_a_guard(torch):
    roads = numbers(
        torch, lambda x, k: x * k if k > 0.5 else x - k, [0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.2, 0.6, 0.5], plans=2
    )
    assert roads[7:] == ["replay"] * 3
    numbers(torch, lambda x, k: x * k if k else x, [0.1, 0.2, 0.3, -0.0, 0.0, 0.0, 0.0, 5.0, -0.0], plans=2)
    numbers(torch, lambda x, k: x * k if 0 <= k < 1 else x, [0.1, 0.2, 0.3, 0.9, 0.0], plans=1)
    numbers(torch, lambda x, k: x * min(k, 1.0), [0.1, 0.2, 0.3, 3.0, 2.0, 1.5, 0.5, 4.0], plans=2)


READS = {
    "int": lambda x, k: x * int(k),
    "float": lambda x, k: x * float(k),
    "round": lambda x, k: x * round(k),
    "format": lambda x, k: x * len(f"{k:.3f}"),
    "str": lambda x, k: x * len(str(k)),
    "percent": lambda x, k: x * len("%f" % k),  # noqa: UP031
    "hash": lambda x, k: x * {0.5: 2, 1.5: 3}[k],
    "math": lambda x, k: x * math.sin(k),
    "floor": lambda x, k: x * math.floor(k),
    "power": lambda x, k: x * k**2,
    "complex": lambda x, k: x * complex(k).real,
    "remainder": lambda x, k: x * (k % 2),
    "attribute": lambda x, k: x * k.is_integer(),
    "list": lambda x, k: x * sum([k, 1.0], 0.0).real,
    "seen through isinstance": lambda x, k: x * round(k) if isinstance(k, float) and not isinstance(k, int) else x,
    "dropout": lambda x, k: rg.nn.functional.dropout(x, k / 3, False),
    "composite": lambda x, k: rg.nn.functional.leaky_relu(x, k),
    "list of numbers": lambda x, k: x.pow(2).mean() + rg.nn.functional.interpolate(x[None], scale_factor=[k * 2]),
}


@pytest.mark.parametrize("how", READS)
def test_a_value_that_is_looked_at_is_a_guard(torch, how):
    numbers(torch, READS[how], [0.5, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5, 0.5], plans=2)


def test_an_int_that_makes_sizes_is_a_guard(torch):
    for f in (
        lambda x, n: x.reshape(n, -1),
        lambda x, n: sum((x for _ in range(n)), x),
        lambda x, n: x[n - 1],
        lambda x, n: x.flatten()[:n],
        lambda x, n: torch.zeros(n) + x.sum(),
        lambda x, n: x * [1.0, 2.0, 3.0][n],
        lambda x, n: x * len([0] * n),
        lambda x, n: torch.arange(n) + x.sum(),
        lambda x, n: x.sum(n - 1),
        lambda x, n: x * (n & 1) + (n << 2),
    ):
        numbers(torch, f, [1, 1, 1, 1, 2, 2, 2, 2, 1, 2], plans=2)


GRADIENTS = {
    "times": lambda w, k: w * k,
    "from the left": lambda w, k: k * w,
    "plus": lambda w, k: w + k,
    "minus": lambda w, k: w - k,
    "from": lambda w, k: k - w,
    "alpha": lambda w, k: w.exp().add(w, alpha=k),
    "sub alpha": lambda w, k: w.sub(w.exp(), alpha=k),
    "weighted": lambda w, k: w.square() * k + (1 - k) * w.exp(),
    "twice": lambda w, k: (w * k) * (w * k) + k,
}


@pytest.mark.parametrize("place", GRADIENTS)
def test_a_number_whose_gradient_is_the_same_formula_for_all(torch, place):
    """One plan, and one for the number one where the gradient is not multiplied by that."""

    def make():
        w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)

        def step(k):
            w.grad = None
            loss = GRADIENTS[place](w, k).sum()
            loss.backward()
            return loss.detach(), loss.item()

        return step, lambda i: (FLOATS[i % len(FLOATS)],), lambda: [w]

    roads = alike(torch, make, 3 * len(FLOATS))
    assert roads[-len(FLOATS) :].count("replay") >= len(FLOATS) - 1


def test_a_second_backward_has_the_number_of_its_call(torch):
    """Nodes that saved no tensor can run again: the graph of a result is that of the recorded call."""

    def make():
        w = torch.tensor([0.5, -1.0], requires_grad=True)

        def step(k):
            w.grad = None
            loss = (w * k).sum()
            loss.backward()
            return loss

        f = torch.compile(step) if made else step
        made.append(f)

        def twice(k):
            f(k).backward()
            return w.grad.clone()

        return twice, lambda i: ((0.5 + i) / 4,), lambda: [w]

    made = []
    plain, _ = trail(torch, make, 8, False)
    ours, _ = trail(torch, make, 8, False)
    assert plain == ours


def test_a_number_with_a_gradient_keeps_its_value(torch):
    """The formula of a gradient may do something else for each number: `x ** 1`, `x ** 0`."""

    def make():
        w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)

        def step(k):
            w.grad = None
            loss = (w * k).sum() + (w**k).nan_to_num().sum()
            loss.backward()
            return loss.detach()

        return step, lambda i: ([1.0, 0.0, 2.0][i // 4 % 3],), lambda: [w]

    alike(torch, make, 24)


def test_a_graph_that_is_live_has_the_number_of_its_call(torch):
    w = torch.tensor([0.5, 2.0], requires_grad=True)
    g = torch.compile(lambda k: (w * k) ** 2)
    for k in (1.0, 2.0, 3.0, 4.0, -1.0, 0.0):
        w.grad = None
        g(k).sum().backward()
        assert w.grad.tolist() == (2 * w.detach() * k * k).tolist()
    assert g._compiled_state.road == "replay" and len(g._compiled_state.plans) == 1


def test_a_step_with_its_learning_rate(torch):
    def make():
        w = torch.ones(3, requires_grad=True)
        average = torch.zeros(3)

        def step(x, lr, decay):
            w.grad = None
            (w * x).square().sum().backward()
            with torch.no_grad():
                w.sub_(w.grad, alpha=lr)
                average.mul_(decay).add_(w, alpha=1 - decay)

        return step, lambda i: (torch.arange(3.0), 0.1 / (i + 1), 1 - 0.5**i), lambda: [w, average]

    assert alike(torch, make, 12)[3:] == ["replay"] * 9


def test_division_by_an_argument_that_becomes_zero(torch):
    f = torch.compile(lambda x, n: (x.sum().item() / n, x / 2))
    x = torch.ones(3)
    for n in (1, 2, 3, 4, 5):
        assert f(x, n)[0] == 3 / n
    assert f._compiled_state.road == "replay"
    with pytest.raises(ZeroDivisionError):
        f(x, 0)
    assert f(x, 6)[0] == 0.5 and f._compiled_state.road == "replay"


def test_what_keeps_a_number_keeps_a_plain_one(torch):
    kept = []

    def f(x, k, n):
        kept.append((k, n, x.sum().item()))
        return x * k

    g = torch.compile(f)
    with pytest.warns(UserWarning, match="changes an object"):
        for i in range(5):
            g(torch.ones(2), 0.5 + i, i)
    assert kept == [(0.5 + i, i, 2.0) for i in range(5)]
    assert {tuple(map(type, row)) for row in kept} == {(float, int, float)}
    assert sorted(kept, reverse=True)[0][0] * 2 == 9.0 and sum(row[1] for row in kept) == 10


def test_an_error_carries_a_plain_number(torch):
    def f(x, k):
        if x.shape[0] > 2:
            raise ValueError(k)
        return x * k

    g = torch.compile(f)
    for i in range(4):
        with pytest.raises(ValueError) as caught:
            g(torch.ones(3), 0.5 + i)
        assert type(caught.value.args[0]) is float and caught.value.args == (0.5 + i,)


def test_threads_with_numbers_of_their_own(torch):
    g = torch.compile(lambda x, k: ((x * k).sum().item(), k - 1))
    problems = []

    def work(n):
        for i in range(50):
            k = n + i / 64
            if g(torch.ones(4), k) != (4 * k, k - 1):
                problems.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not problems


# --- what is read of tensors ---------------------------------------------------------------------
TAILS = {
    "item": lambda x: x.sum().item(),
    "several": lambda x: (x * 2, x.sum().item(), {"most": x.max().item(), "at": x.argmax().item()}),
    "quotient": lambda x: (x > 1).sum().item() / x.numel(),
    "arithmetic": lambda x: (1 - x.mean().item()) * 100 + x.sum().item(),
    "list": lambda x: x.tolist(),
    "deep list": lambda x: (x[None, :, None] + 1).tolist(),
    "ints": lambda x: [x.long().tolist(), x.numel(), -x.long().sum().item()],
    "before a write": lambda x: (x.sum().item(), x.add_(1).sum().item(), x.mul_(2).sum().item()),
    "of a view": lambda x: (x[1].item(), x[1:].tolist(), x.flip(0)[0].item()),
    "half": lambda x: (x.bfloat16().sum().item(), x.half().tolist(), x.double().sum().item()),
    "moved": lambda x: (float(x.sum()), {"at": int(x.argmax()), "one": 1}, [float(x.argmax()), x + 1]),
    "fed back": lambda x: x * x.mean().item() + x.sum().item() / 2,
    "fed back one after the other": lambda x: (
        x * x.sum().item() + (x * x.amax().item()).amin().item() * x - x.amax().item() / 3
    ),
    "fed back as an int": lambda x: x + x.argmax().item(),
}


@pytest.mark.parametrize("tail", TAILS)
def test_values_that_are_returned(torch, tail):
    known = tail != "moved" or (3, 11) <= sys.version_info[:2] <= (3, 13)
    make = lambda: (TAILS[tail], lambda i: (torch.randn(3) * 4,), list)  # noqa: E731
    roads = alike(torch, make, 8, "replay" if known else "eager")
    assert not known or roads[3:] == ["replay"] * 5


def test_an_int_that_leaves_64_bits(torch):
    rows = [torch.tensor([1.0, 0, 0]), torch.tensor([0.0, 0, 1])]
    make = lambda: ((lambda x: (x.argmax().item() + 2**62 - 1) * 2), (lambda i: (rows[i > 4],)), list)  # noqa: E731
    assert alike(torch, make, 8)[3:] == ["replay"] * 5


def test_a_training_step_returns_numbers(torch):
    def make():
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            out = model(x)
            loss = torch.nn.functional.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            return loss.item(), (out.argmax(1) == y).sum().item() / len(y)

        return step, lambda i: (torch.randn(6, 4), torch.randint(0, 3, (6,))), lambda: list(model.parameters())

    assert alike(torch, make, 8)[3:] == ["replay"] * 5


MIDDLES = {
    "a branch": lambda x: x if x.sum().item() > 0 else -x,
    "a text": lambda x: f"{x.sum().item():.2f}",
    "a conversion": lambda x: round(x.sum().item(), 2),
    "a size": lambda x: rg.zeros(x.argmax().item() + 1),
    "an index": lambda x: x[x.argmax().item()],
    "a function": lambda x: math.exp(x.sum()),
    "a function of a number": lambda x: math.exp(x.sum().item()),
    "a power": lambda x: math.pow(x.sum(), 2),
    "a format": lambda x: "%f" % x.sum(),  # noqa: UP031
    "a complex": lambda x: complex(x.sum()),
    "dropped": lambda x: (float(x.sum()), x)[1],
    "a float": lambda x: float(x.sum()) * 2,
    "an int": lambda x: x * int(x.argmax()),
    "a truncation": lambda x: int(x.sum()),
    "a divisor": lambda x: 1.0 / x.sum().item(),
    "a truth": lambda x: bool(x.sum().item()),
    "a bool": lambda x: (x > 0).all().item(),
    "a loop": lambda x: sum(v for v in x.tolist() if v > 0),
}


@pytest.mark.parametrize("middle", MIDDLES)
def test_values_that_python_looks_at(torch, middle):
    stays_eager(torch, MIDDLES[middle], torch.arange(3.0) + 1, match="reads the values|depends")


def test_explain_shows_numbers_and_reads(torch):
    f = torch.compile(lambda x, k, n: (x * (1 - k), x.sum().item() / n) if k < 2 else (x, n))
    x = torch.ones(2)
    for i in range(5):
        f(x, i / 4, 2)
    text = str(torch.compiler.explain(f)(x, 0.5, 3))
    assert "mul(%0, {(1 - number 0)}" in text and "read 0 = %" in text
    assert "number 0 of the arguments: any float, read in each call" in text
    assert "number 1 of the arguments: any int" in text and "number 0 < 2 is True" in text


def test_verify_compares_numbers(torch, monkeypatch):
    monkeypatch.setenv("RUSTGRAD_COMPILE", "verify")
    f = torch.compile(lambda x, k: ((x * k).sum().item(), x + k))
    for i in range(8):
        assert f(torch.ones(2), i / 3)[0] == (torch.ones(2) * (i / 3)).sum().item()
    assert f._compiled_state.road == "replay"


def test_a_saved_function_has_the_numbers_of_its_example(torch, tmp_path):
    path = tmp_path / "f.rgx"
    torch.compiler.save(torch.compile(lambda x, k: x * k), path, torch.ones(2), 0.5)
    program = torch.compiler.load(path)
    assert program(torch.ones(2)).tolist() == program(torch.ones(2), 0.5).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"argument 'k' is 0.25; expected 0.5"):
        program(torch.ones(2), 0.25)


def test_numbers_take_no_memory(torch):
    g = torch.compile(lambda x, k: (x * k, x.sum().item()))
    for i in range(4):
        g(torch.ones(2), i / 2)
    state = g._compiled_state
    for i in range(2000):
        g(torch.ones(2), i / 2)
    assert len(state.plans) == len(state.forms) == 1 and trail(
        torch, lambda: (state.function, lambda i: (torch.ones(2), 1.0), list), 1, False
    )
