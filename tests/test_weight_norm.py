"""`nn.utils.weight_norm`: a parameter as a direction and a magnitude."""

import warnings

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")


@pytest.mark.parametrize(("dim", "shape"), [(0, (2, 1)), (1, (1, 3)), (None, ())])
def test_taken_apart_and_back(torch, dim, shape):
    m, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    before, out = m.weight.detach().clone(), m(x)
    assert torch.nn.utils.weight_norm(m, dim=dim) is m
    assert m.weight_g.shape == shape and m.weight_v.equal(before) and "weight" not in dict(m.named_parameters())
    assert set(m.state_dict()) == {"bias", "weight_g", "weight_v"}
    assert torch.allclose(m(x), out)
    m(x).sum().backward()
    assert m.weight_g.grad.shape == shape
    # A change along the direction only changes the magnitude.
    assert abs((m.weight_v.grad * m.weight_v.detach()).sum().item()) < 1e-5
    with torch.no_grad():
        m.weight_g *= 2
    assert torch.allclose(m(x), 2 * (out - m.bias) + m.bias)
    assert torch.nn.utils.remove_weight_norm(m) is m
    assert isinstance(m.weight, torch.nn.Parameter) and torch.allclose(m.weight, 2 * before)
    assert set(m.state_dict()) == {"bias", "weight"} and not m._forward_pre_hooks


def test_refused(torch):
    m = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks on the same parameter weight"):
        torch.nn.utils.weight_norm(m)
    with pytest.raises(ValueError, match="weight_norm of 'bias' not found in"):
        torch.nn.utils.remove_weight_norm(m, "bias")
    with pytest.warns(FutureWarning, match="is deprecated in favor of"):
        torch.nn.utils.weight_norm(torch.nn.Linear(1, 1), "bias", None)


def test_a_program_is_told_once(torch):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
        torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    assert [w.category for w in told] == [FutureWarning] and told[0].filename.endswith("weight_norm.py")
