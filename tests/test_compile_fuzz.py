"""Random programs under `compile`: whatever they do, each call shows what the plain call shows."""

import random
import warnings

import pytest
from test_compile import trail

LINES = (
    "{d} = {a} * {b} + {c}",
    "{d} = ({a} - {b}).tanh()",
    "{d} = {a} * k",
    "{d} = {a}.t().contiguous().t()",
    "{d} = {a}[1:].sum() + {b}",
    "{d} = {a} @ w",
    "{d} = F.dropout({a}, 0.5, self_training)",
    "{d} = F.layer_norm({a}, (3,), gain)",
    "{d} = {a}.detach() + {b}",
    "{d} = {a} + torch.randn(3, 3)",
    "{d} = torch.where({a} > {b}, {a}, {c})",
    "{d} = {a}.clone(); {d}.mul_(2); {d}[0] = {b}[1]",
    "state.mul_(0.5).add_({a}.detach())",
    "state[1].copy_({a}.detach()[0])",
    "y.add_(1)",
    "with torch.no_grad(): {d} = {a} * w",
    "w.data.mul_(0.9)",
    "if k > 1: {d} = {a} * 2",
    "{d} = {a} * (1 - k) + {b} / (k * k + 2)",
    "{d} = k - {a}",
    "state.mul_(k / 4).add_({a}.detach(), alpha=0.5 * k)",
    "{d} = ({a}.detach() > k).float().clamp(-k, m)",
    "numbers = numbers + [{a}.sum().item() / 3, -k]",
    "for i in range(n): {d} = {a} + i",
    "{d} = ({a} * 2 + {b}).exp() - {c}",
    "{d} = {a}.clamp(-1, 1) * {b}[0] - {c}[:, :1]",
    "{d} = ({a} > {b}).float() * {c} + ({a}.double() / 3).to(torch.bfloat16)",
    "{d} = {a} + 1; {d}.mul_({b}.detach()).add_(2)",
    "state.t().sub_({a}.detach() * 0.1).clamp_(-3, 3)",
    "{d} = {a}.t() + {a}.t() + ({b} + {c}) * ({b} + {c})",
)
RARE = (
    "{d} = {a} * {b}.sum().item()",
    "log.append(1)",
    "if {a}.sum() > 0: {d} = -{a}",
    "{d} = {a}[{a} > 0].sum() + {b}",
)
ENDS = (
    "return {a}.detach()",
    "return {a}, {b}.detach(), state",
    "({a} * {a}).mean().backward()\n    optimizer.step()\n    return None",
    "optimizer.zero_grad()\n    loss = ({a} * {b}).sum()\n    loss.backward()\n    optimizer.step()\n    return loss",
    "loss = {a}.sum()\n    (loss * loss + w.sum()).backward()\n    w.grad.mul_(0.5)\n    return w.grad.clone()",
    "return {a} * {b}",
    "return {a}.detach(), numbers, {b}.sum().item(), k",
    "optimizer.zero_grad()\n    loss = ({a} * {b}).mean()\n    loss.backward()\n    optimizer.step()\n    return loss.item(), (x > 0).sum().item() / 9, m * k",
    "loss = ({a} * w).sum() * k\n    loss.backward()\n    return loss.detach(), {b}.tolist()",
)


def program(rng) -> str:
    """A function of x, y and k over `w`, `gain`, `state`, an optimizer and some numbers."""
    names = ["x", "y", "x"]
    body = []
    for i in range(rng.randint(2, 7)):
        lines = RARE if rng.random() < 0.04 else LINES
        line = rng.choice(lines).format(a=rng.choice(names), b=rng.choice(names), c=rng.choice(names), d=f"v{i}")
        body.append(line)
        if f"v{i} = " in line and not line.startswith(("if", "for", "with")):
            names.append(f"v{i}")
    end = rng.choice(ENDS).format(a=names[-1], b=rng.choice(names))
    return "def f(x, y, k, m):\n    " + "\n    ".join(["numbers = [m]", *body, end])


# All seeds go through all passes, some through each alone and through none.
ALONE = ([], ["dead_code"], ["common"], ["fuse"], ["epilogue"], ["recompute"], ["prepare"])
RUNS = [(None, seed) for seed in range(80)] + [(passes, seed) for seed in range(0, 80, 5) for passes in ALONE]


@pytest.mark.parametrize(("passes", "seed"), RUNS, ids=lambda v: v if isinstance(v, int) else ",".join(v or ["all"]))
def test_a_random_program(torch, passes, seed):
    text = program(random.Random(seed))

    def make():
        torch.manual_seed(seed)
        w = torch.randn(3, 3, requires_grad=True)
        gain = torch.ones(3, requires_grad=True)
        state = torch.zeros(3, 3)
        optimizer = (torch.optim.Adam if seed % 2 else torch.optim.SGD)([w, gain], lr=0.05)
        space = {
            "__name__": "user",
            "torch": torch,
            "F": torch.nn.functional,
            "w": w,
            "gain": gain,
            "state": state,
            "optimizer": optimizer,
            "self_training": bool(seed % 3),
            "n": 2,
            "log": [],
        }
        exec(text, space)

        def arguments(i):
            if i == 6:
                optimizer.param_groups[0]["lr"] = 0.01
            if i == 9:
                space["n"] = 3
            x = torch.randn(3, 3)
            return (x, x if seed % 5 == 0 else torch.randn(3, 3), 2.0 if seed % 3 else i / 3, seed if seed % 2 else i)

        return space["f"], arguments, lambda: [w, gain, state]

    torch.compiler.reset()
    plain, _ = trail(torch, make, 12, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, roads = trail(torch, make, 12, True if passes is None else {"passes": passes})
    for i, (a, b) in enumerate(zip(plain, ours, strict=True)):
        assert a == b, f"call {i} differs, by the road {roads[i]}:\n{text}"
