"""What a recording of calls shows besides the op table: named ranges."""

import pytest


def test_an_optimizer_step_is_a_range(torch):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)

    def train():
        (w * w).sum().backward()
        optimizer.step()
        w.neg()

    _, recording = torch._C._capture(train)
    assert recording.problems() == []
    [(name, start, end)] = recording.ranges()
    steps = recording.steps()
    assert name == "Optimizer.step#SGD.step"
    assert steps.index("sum") < start < end < len(steps) and steps[-1] == "neg"
    assert w.tolist() == [0.0, 0.0]


def test_ranges_nest_and_end_with_an_error(torch):
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    optimizer = torch.optim.SGD([w], lr=0.5)

    def fails():
        optimizer.zero_grad()
        raise ValueError("no loss")

    def train():
        torch._C._in_range("epoch", optimizer.step)
        with pytest.raises(ValueError, match="no loss"):
            optimizer.step(fails)
        return w.neg()

    _, recording = torch._C._capture(train)
    (epoch, a, b), (step, c, d), (failed, e, f) = recording.ranges()
    assert (epoch, step, failed) == ("epoch", "Optimizer.step#SGD.step", "Optimizer.step#SGD.step")
    assert a == c < d == b == e == f == len(recording.steps()) - 1
