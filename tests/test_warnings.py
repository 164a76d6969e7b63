"""Warnings: exactly where PyTorch gives one."""

import warnings

import pytest
from support.target import torch

F = torch.nn.functional


def ones(*shape):
    return torch.ones(*shape)


def hooked(register):
    """The backward of a module whose input does not require grad."""
    layer = torch.nn.Linear(3, 2)
    getattr(layer, register)(lambda *_: None)
    layer(ones(1, 3)).sum().backward()


EYE, HALF = torch.eye(2), torch.full((2, 2), 0.5)
FIRST = torch.tensor([0, 1])

TOLD = {
    "meshgrid": (lambda: torch.meshgrid(ones(2), ones(3)), "it will be required to pass the indexing argument"),
    "kl_div": (lambda: F.kl_div(HALF, HALF), "'mean' will be changed to behave the same as 'batchmean'"),
    "index_reduce": (lambda: ones(3).index_reduce(0, FIRST, ones(2), "amax"), r"index_reduce\(\) is in beta"),
    "index_reduce_": (lambda: ones(3).index_reduce_(0, FIRST, ones(2), "amax"), r"index_reduce\(\) is in beta"),
    "scatter": (lambda: ones(3).scatter(0, FIRST, ones(2), reduce="add"), "The reduce argument of torch.scatter"),
    "tensor": (lambda: torch.tensor(ones(2)), "rather than torch.tensor"),
    "new_tensor": (lambda: ones(1).new_tensor(ones(2)), "rather than tensor.new_tensor"),
    "where": (lambda: torch.where(torch.ones(2, dtype=torch.uint8), 1.0, 2.0), "a uint8 condition tensor"),
    "chain_matmul": (lambda: torch.chain_matmul(EYE, EYE), "Use torch.linalg.multi_dot instead"),
    "lu_solve": (lambda: torch.lu_solve(HALF, *torch.linalg.lu_factor(EYE)), "in favor of torch.linalg.lu_solve"),
    "triangular_solve": (lambda: torch.triangular_solve(HALF, EYE), "in favor of torch.linalg.solve_triangular"),
    "cross": (lambda: torch.cross(ones(2, 3), ones(2, 3)), "without specifying the dim arg is deprecated"),
    "range": (lambda: torch.range(1, 3), "torch.range is deprecated"),
    "float": (lambda: torch.tensor([1j]).float(), "discards the imaginary part"),
    "copy_": (lambda: torch.zeros(1).copy_(torch.tensor([1j])), "discards the imaginary part"),
    "std": (lambda: ones(1).std(), r"std\(\): degrees of freedom is <= 0"),
    "var_mean": (lambda: torch.var_mean(ones(1, 2), 0), r"var_mean\(\): degrees of freedom is <= 0"),
    "T": (lambda: torch.ones(()).T, "deprecated on 0-D tensors"),
    "resize": (lambda: ones(4).resize(2, 2), "non-inplace resize is deprecated"),
    "resize_as": (lambda: ones(4).resize_as(EYE), "non-inplace resize_as is deprecated"),
    "searchsorted": (lambda: torch.searchsorted(ones(2, 3), ones(3, 2).t()), "input value tensor is non-contiguous"),
    "bucketize": (lambda: torch.bucketize(ones(2), ones(6)[::2]), "boundary tensor is non-contiguous"),
    "embedding_bag": (
        lambda: F.embedding_bag(EYE, FIRST[None]),
        "Argument order of nn.functional.embedding_bag was changed",
    ),
    "full hook": (lambda: hooked("register_full_backward_hook"), "since no inputs require gradients"),
}
SILENT = {
    "meshgrid": lambda: torch.meshgrid(ones(2), ones(3), indexing="ij"),
    "cartesian_prod": lambda: torch.cartesian_prod(ones(2), ones(3)),
    "kl_div": lambda: F.kl_div(HALF, HALF, reduction="batchmean"),
    "scatter_reduce": lambda: ones(3).scatter_reduce(0, FIRST, ones(2), "amax"),
    "as_tensor": lambda: torch.as_tensor(ones(2)),
    "cross": lambda: torch.cross(ones(2, 3), ones(2, 3), dim=1),
    "real": lambda: torch.tensor([1j]).real,
    "to bool": lambda: torch.tensor([1j]).bool(),
    "complex gradient": lambda: (torch.ones(1, requires_grad=True) * 1j).abs().sum().backward(),
    "std": lambda: ones(1).std(correction=0),
    "searchsorted": lambda: torch.searchsorted(ones(2, 3), ones(2, 3)),
    "pre hook": lambda: hooked("register_full_backward_pre_hook"),
}


# The others come each time that they apply.
ONCE = {
    "meshgrid", "index_reduce", "index_reduce_", "scatter", "where", "chain_matmul", "lu_solve", "triangular_solve", "cross", "float",
    "copy_", "T", "searchsorted", "bucketize",
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_told_as_often_as_in_pytorch(name):
    call, _ = TOLD[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
        first = len(told)
        call()
    assert first <= 1 and len(told) - first == (name not in ONCE)


@pytest.mark.usefixtures("warn_always")
@pytest.mark.parametrize("name", TOLD)
def test_warned(name):
    call, text = TOLD[name]
    with pytest.warns(UserWarning, match=text):
        call()


@pytest.mark.parametrize("name", SILENT)
def test_not_warned(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SILENT[name]()


@pytest.mark.usefixtures("warn_always")
def test_a_warning_turned_into_an_error_is_raised():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="in beta"):
            ones(3).index_reduce(0, FIRST, ones(2), "amax")
