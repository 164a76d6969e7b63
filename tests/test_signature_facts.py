"""What signatures state of arguments: dimensions, enumerated strings, tensors that are written to, and which overload is meant."""

import pytest
from support.target import torch


def adam(p, exp_avg):
    numbers = dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False)
    squares, step = torch.ones(2), torch.tensor(1.0)
    torch._C.ops["_fused_adam_"]([p], [torch.ones(2)], [exp_avg], [squares], [], [step], **numbers)


def test_versions_of_all_written_arguments_rise():
    p, exp_avg = torch.ones(2), torch.ones(2)
    adam(p, exp_avg)
    assert p._version == exp_avg._version == 1


def test_a_saved_tensor_that_an_argument_overwrote_is_noticed():
    w, exp_avg = torch.ones(2, requires_grad=True), torch.ones(2)
    loss = (w * exp_avg).sum()
    adam(torch.ones(2), exp_avg)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_leaf_that_requires_grad_is_not_written_through_an_argument():
    exp_avg = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        adam(torch.ones(2), exp_avg)
    assert exp_avg._version == 0 and exp_avg.tolist() == [1, 1]
    with torch.no_grad():
        adam(torch.ones(2), exp_avg)
    assert exp_avg._version == 1


def test_history_is_not_overwritten_through_an_argument():
    exp_avg = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="requires grad, and no gradient passes"):
        adam(torch.ones(2), exp_avg)
    assert exp_avg.tolist() == [2, 2]


def test_an_expanded_tensor_is_not_written_through_an_argument():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        adam(torch.ones(2), torch.ones(1).expand(2))


@pytest.mark.parametrize("dim", [2, -3, 2**62, -(2**63)])
@pytest.mark.parametrize(
    "call",
    [
        lambda t, d: t.sum(d),
        lambda t, d: t.sum((0, d)),
        lambda t, d: t.transpose(0, d),
        lambda t, d: t.transpose_(d, 0),
        lambda t, d: t.softmax(d),
        lambda t, d: torch.sum(t, d, out=torch.empty(0)),
        lambda t, d: torch._C._call_composite("softmax", t, d, None),
    ],
)
def test_dimensions_are_checked_on_every_path(call, dim):
    with pytest.raises(
        IndexError, match=rf"Dimension out of range \(expected to be in range of \[-2, 1\], but got {dim}\)"
    ):
        call(torch.ones(2, 3), dim)


def test_a_new_dimension_may_come_last():
    t = torch.ones(2, 3)
    assert t.unsqueeze(2).shape == t.unsqueeze(-1).shape == (2, 3, 1)
    assert torch.stack([t, t], 2).shape == (2, 3, 2)
    with pytest.raises(IndexError, match=r"\[-3, 2\], but got 3"):
        t.unsqueeze(3)
    with pytest.raises(IndexError, match=r"\[-3, 2\], but got 3"):
        torch.stack([t, t], 3)


def test_dimensions_are_saved_as_they_were_given():
    x = torch.ones(2, 3, requires_grad=True)
    assert x.sum(-1).grad_fn._saved_dim in ((-1,), (2**64 - 1,))
    assert x.sum(1).grad_fn._saved_dim == (1,)


def test_enumerated_strings_are_refused_in_the_words_of_the_op():
    x = torch.ones(2)
    with pytest.raises(
        RuntimeError, match="div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'"
    ):
        torch.div(x, x, rounding_mode="up")
    with pytest.raises(ValueError, match="nope is not a valid value for reduction"):
        torch.nn.functional.mse_loss(x, x, reduction="nope")
    with pytest.raises(TypeError, match="rounding_mode=int"):
        torch.div(x, x, rounding_mode=3)


def test_a_tensor_argument_takes_the_overload_of_a_tensor():
    x, mask = torch.zeros(2), torch.tensor([True, False])
    value = torch.tensor(3.0, requires_grad=True)
    x.masked_fill(mask, value).sum().backward()
    assert value.grad == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.split(1, 9),
        lambda x: x.split([1], 9),
        lambda x: x.split_with_sizes([1], 9),
        lambda x: torch.unsafe_split(x, 1, 9),
        lambda x: torch.unsafe_split_with_sizes(x, [1], 9),
        lambda x: x.chunk(1, 9),
        lambda x: x.unsafe_chunk(1, 9),
        lambda x: x.tensor_split(2, 9),
        lambda x: x.tensor_split((1,), 9),
        lambda x: x.tensor_split(torch.tensor(2), 9),
        lambda x: x.narrow(3, 0, 1),
        lambda x: x.narrow(3, torch.tensor(0), 1),
    ],
)
def test_a_scalar_is_refused_before_the_range_of_its_dimension(call):
    with pytest.raises(RuntimeError, match="at least a 1-dimensional tensor|0-dim tensor"):
        call(torch.tensor(1.0))


def test_dimensions_of_splits_are_in_range():
    for call in (lambda x: x.split(1, 1), lambda x: x.chunk(1, 1), lambda x: x.tensor_split(2, -2)):
        with pytest.raises(IndexError, match="Dimension out of range"):
            call(torch.ones(2))
