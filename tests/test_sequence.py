"""Attention, Transformer and recurrent modules: values, gradients, states and errors recorded from PyTorch.

`golden/sequence.json` holds the recorded results, `golden/record_sequence.py` their cases.
"""

import json
import math
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
RECORD = json.loads((GOLDEN / "sequence.json").read_text())["cases"]
RECORDER = {}
exec((GOLDEN / "record_sequence.py").read_text().replace("import torch\n", ""), RECORDER)


def close(got, want, tol=1e-9):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tol)
    elif isinstance(want, float):
        assert math.isclose(got, want, rel_tol=tol, abs_tol=tol) or (got != got and want != want), f"{got} != {want}"
    else:
        assert got == want


def test_every_case_is_recorded():
    assert list(RECORD) == list(RECORDER["CASES"])


@pytest.mark.parametrize("name", RECORDER["CASES"])
@pytest.mark.filterwarnings("ignore")
def test_recorded(torch, name):
    want, case = RECORD[name], RECORDER["CASES"][name]
    if "error" in want:
        with pytest.raises(Exception) as caught:
            case(torch)
        assert type(caught.value).__name__ == want["error"]
        assert want["message"] in str(caught.value).replace("rustgrad.", "torch.")
        return
    got = case(torch)
    for key in want["value"] if isinstance(got, dict) else ():
        close(got[key], want["value"][key])
    if not isinstance(got, dict):
        close(got, want["value"])
