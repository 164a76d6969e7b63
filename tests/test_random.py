"""Random numbers: PyTorch's values for a seed on the CPU, generators and their states."""

import json
import pickle
from pathlib import Path

import pytest
import rustgrad as torch
from support.random_programs import DRAWS, FLIPS, run

RECORDED = json.loads((Path(__file__).parent / "golden" / "random.json").read_text())
# One rounding of a half number.
HALVES = {"float16": 1e-3, "bfloat16": 1e-2}


@pytest.mark.parametrize("source", [*DRAWS, *FLIPS])
def test_a_seed_gives_the_values_of_pytorch(source):
    got, want = run(torch, source), RECORDED[source]
    assert len(got) == len(want)
    if not any(isinstance(x, float) for x in want):
        assert got == want
        return
    tolerance = next((t for name, t in HALVES.items() if name in source), 3e-6)
    assert got == pytest.approx(want, rel=tolerance, abs=tolerance)


def test_values_do_not_depend_on_threads():
    threads = torch.get_num_threads()
    try:
        drawn = []
        for n in (1, 3):
            torch.set_num_threads(n)
            torch.manual_seed(0)
            drawn.append([torch.randn(100_003), torch.empty(70_000).exponential_(), torch.randperm(5000)])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*drawn, strict=True))


def test_a_state_is_restored_by_every_road():
    generator = torch.Generator().manual_seed(3)
    # An odd count leaves the second number of a pair in the state.
    torch.randn(3, generator=generator)
    copies = [generator.clone_state(), pickle.loads(pickle.dumps(generator)), torch.Generator()]
    copies[2].set_state(generator.get_state())
    want = torch.randn(3, generator=generator)
    assert all(torch.equal(torch.randn(3, generator=g), want) for g in copies)
    assert [g.initial_seed() for g in copies] == [3] * 3


def test_fork_rng_restores_the_state():
    torch.manual_seed(1)
    want = torch.rand(3)
    torch.manual_seed(1)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.equal(torch.rand(3), want)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (torch.zeros(16, dtype=torch.uint8), RuntimeError, "Expected a CPUGeneratorImplState of size 5056 but found"),
        (torch.zeros(5056, dtype=torch.uint8), RuntimeError, "Invalid mt19937 state"),
        (torch.full((5056,), 255, dtype=torch.uint8), RuntimeError, "Invalid mt19937 state"),
        (torch.zeros(5056), TypeError, "RNG state must be a torch.ByteTensor"),
    ],
)
def test_what_is_no_state_is_refused(state, error, message):
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    with pytest.raises(error, match=message):
        generator.set_state(state)
    assert torch.equal(generator.get_state(), before)


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'gpu'"):
        torch.rand(3, generator=torch.Generator("gpu"))
    with pytest.raises(RuntimeError, match="META device type not an accelerator"):
        torch.Generator("meta")


def test_numbers_are_where_they_belong():
    """A fill that fails, or that is of nothing, takes no number."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    torch.rand(0), torch.randperm(1), torch.empty(0, 3).normal_()
    with pytest.raises(RuntimeError, match="from"):
        torch.randint(5, 5, (3,))
    with pytest.raises(NotImplementedError):
        torch.empty(3, dtype=torch.int64).normal_()
    assert torch.equal(torch.get_rng_state(), before)


def test_multinomial_counts_categories_in_float32(torch):
    """As in PyTorch, of any dtype."""
    for dtype in (torch.float32, torch.float64):
        with pytest.raises(RuntimeError, match=r"number of categories cannot exceed 2\^24"):
            torch.multinomial(torch.ones(1, dtype=dtype).expand(2**24 + 1), 1)


def test_seeds_are_what_int_takes():
    torch.manual_seed(7)
    want = torch.rand(3).tolist()
    for seed in (7.0, "7", True + 6, 7.9):
        assert torch.manual_seed(seed) is not None
        assert torch.initial_seed() == 7 and torch.rand(3).tolist() == want
    for seed, error in ((None, TypeError), ("x", ValueError), (2**64, RuntimeError), (2**200, RuntimeError)):
        with pytest.raises(error):
            torch.manual_seed(seed)
    assert torch.initial_seed() == 7
