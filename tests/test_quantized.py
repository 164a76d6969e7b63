"""Quantised tensors and ops, fake quantisation, observers and whole programs: integers, gradients and text are those that PyTorch gave."""

import json
import warnings
from pathlib import Path

import pytest
from support import quantized, quantized_programs

GOLDEN = json.loads((Path(__file__).parent / "golden" / "quantized.json").read_text())


@pytest.fixture(scope="module")
def results():
    import importlib

    from support import target

    torch = importlib.import_module(target.NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = (*quantized.cases(torch), *quantized_programs.cases(torch))
        return {name: quantized.plain(torch, value) for name, value in every}


def compare(found, want):
    """Integers, text and what has one are equal; sums of float32 numbers are near."""
    if isinstance(want, list):
        assert isinstance(found, list) and len(found) == len(want)
        for pair in zip(found, want, strict=True):
            compare(*pair)
    elif isinstance(want, float):
        assert found == pytest.approx(want, rel=2e-6, abs=1e-7, nan_ok=True)
    else:
        assert found == want


@pytest.mark.parametrize("name", list(GOLDEN))
def test_as_recorded(results, name):
    compare(results[name], GOLDEN[name])


def test_all_cases_are_recorded(results):
    assert list(results) == list(GOLDEN)
