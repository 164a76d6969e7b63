"""The op table through files of plans: every op and sample, saved, loaded and run on other values."""

import pytest
from support import saved
from support.optable import ops


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_saved(op, record_property):
    problems, count = saved.saved(op)
    record_property("samples", count)
    assert not problems, "\n  ".join(problems)
