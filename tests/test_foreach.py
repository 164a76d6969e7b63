"""`torch._foreach_*`: ops on lists of tensors."""

import pytest


def test_ops_on_lists_of_tensors(torch):
    def made():
        return [torch.tensor([0.25, 0.5]), torch.tensor([0.75])]

    def values(tensors):
        return [t.tolist() for t in tensors]

    results = {
        "add": torch._foreach_add(made(), made(), alpha=2),
        "mul": torch._foreach_mul(made(), [2.0, 4.0]),
        "div": torch._foreach_div(made(), torch.tensor(0.5)),
        "sub": torch._foreach_sub(made(), 0.25),
        "maximum": torch._foreach_maximum(made(), 0.5),
        "lerp": torch._foreach_lerp(made(), torch._foreach_neg(made()), [0.5, 1.0]),
        "addcmul": torch._foreach_addcmul(made(), made(), made(), torch.tensor([4.0, 0.0])),
        "pow": torch._foreach_pow(2.0, [torch.tensor([1.0, 2.0])]),
        "norm": torch._foreach_norm([torch.tensor([3.0, 4.0])]),
        "rsqrt": torch._foreach_rsqrt([torch.tensor([4.0])]),
    }
    assert {name: values(r) for name, r in results.items()} == {
        "add": [[0.75, 1.5], [2.25]],
        "mul": [[0.5, 1.0], [3.0]],
        "div": [[0.5, 1.0], [1.5]],
        "sub": [[0.0, 0.25], [0.5]],
        "maximum": [[0.5, 0.5], [0.75]],
        "lerp": [[0.0, 0.0], [-0.75]],
        "addcmul": [[0.5, 1.5], [0.75]],
        "pow": [[2.0, 4.0]],
        "norm": [5.0],
        "rsqrt": [[0.5]],
    }
    tensors = made()
    torch._foreach_mul_(tensors, 2.0)
    torch._foreach_addcdiv_(tensors, made(), made(), -1.0)
    torch._foreach_minimum_(tensors, [0.0, 1.0])
    assert values(tensors) == [[-0.5, 0.0], [0.5]]
    torch._foreach_copy_(tensors, made())
    torch._foreach_zero_(tensors[:1])
    assert values(tensors) == [[0.0, 0.0], [0.75]]
    for wrong, message in (
        (lambda: torch._foreach_add([], 1), "Tensor list must have at least one tensor"),
        (lambda: torch._foreach_add(tensors, tensors[:1]), "must have the same number of tensors, got 2 and 1"),
        (lambda: torch._foreach_mul(tensors, [1.0]), "same number of elements as scalar list"),
        (lambda: torch._foreach_mul(tensors, torch.ones(3)), "expected to be 0 dim but it has 1 dimensions"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()
    with pytest.raises(TypeError):
        torch._foreach_copy_(tensors, 1.0)
    w = torch.ones(1, requires_grad=True)
    torch._foreach_exp([w])[0].backward()
    assert w.grad.item() == pytest.approx(2.718281828)
    assert not hasattr(torch, "_foreach_softmax") and not hasattr(torch, "_foreach_clone_")
