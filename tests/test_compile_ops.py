"""The op table under `compile`: every op and sample, as it is, recorded and replayed, with other values each time."""

import pytest
from support import compiled
from support.optable import ops


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_forward(op, record_property):
    problems, count = compiled.forward(op, "cpu")
    record_property("samples", count)
    assert not problems, "\n  ".join(problems)


@pytest.mark.parametrize("op", [op for op in ops() if op.differentiable], ids=lambda op: op.name)
def test_gradient(op, record_property):
    problems, count = compiled.gradient(op, "cpu")
    record_property("samples", count)
    assert not problems, "\n  ".join(problems)
