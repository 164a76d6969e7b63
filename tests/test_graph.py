"""The backward graph against PyTorch's: every case of `tests/graph/` gives the outcome in `golden/graph.json`."""

import pytest
from graph import CASES
from support import recorded

RECORD = recorded.read()


@pytest.mark.parametrize("name", CASES)
def test_case(torch, name):
    got, want = recorded.outcome(CASES[name], torch), RECORD[name]
    assert recorded.same(got, want), f"\n     got {got}\n  wanted {want}"


def test_record_is_complete():
    assert list(RECORD) == list(CASES)
