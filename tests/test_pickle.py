"""Pickles and copies of functions, methods and dtypes: by their qualified names."""

import copy
import importlib
import io
import pickle
import warnings

import pytest
from support import target

# Of PyTorch's own functions some, made by wrappers or enums, cannot be pickled.
own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad promises")
SPACES = ["", "nn.functional", "linalg", "special", "masked", "signal.windows", "nn.init", "autograd"]


def namespace(torch, space):
    return importlib.import_module(f"{torch.__name__}.{space}") if space else torch


@own
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_functions(torch, space, protocol):
    home = namespace(torch, space)
    values = {n: getattr(home, n) for n in getattr(home, "__all__", dir(home)) if n[0] != "_"}
    names = [n for n, v in values.items() if callable(v) and not isinstance(v, type)]
    assert len(names) > 3
    for name in names:
        value = values[name]
        assert pickle.loads(pickle.dumps(value, protocol)) is value, name
        assert copy.copy(value) is value and copy.deepcopy([value])[0] is value, name


@own
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_methods(torch, protocol):
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        if (
            not callable(value)
            or isinstance(value, type)
            or name in ("__subclasshook__", "__init_subclass__", "__new__")
        ):
            continue
        assert pickle.loads(pickle.dumps(value, protocol)) == value, name


def test_names(torch):
    assert torch.nn.functional.relu.__module__.endswith("nn.functional") and torch.add.__name__ == "add"
    assert torch.Tensor.add.__qualname__.endswith("add") and torch.Tensor.add_.__name__ == "add_"
    for name in ("relu_", "elu_", "threshold_"):
        assert getattr(torch.nn.functional, name).__name__ == name


def test_within_objects(torch):
    layers = {"act": torch.nn.functional.relu, "sum": [torch.add, torch.Tensor.sin], "dtype": torch.float32}
    layers |= {"class": torch.nn.Linear, "size": torch.Size([2]), "device": torch.device("cpu")}
    assert pickle.loads(pickle.dumps(layers)) == layers == copy.deepcopy(layers)
    bound = pickle.loads(pickle.dumps(torch.tensor([1.0, 2.0]).add))
    assert bound(1).tolist() == [2.0, 3.0]


def test_hooks_that_pickling_loses_warn_unless_marked(torch):
    t = torch.ones(2, requires_grad=True)
    t.register_hook(torch.utils.hooks.unserializable_hook(lambda grad: None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(pickle.loads(pickle.dumps(t)), t)
    t.register_hook(lambda grad: None)
    for write in (pickle.dumps, lambda t: torch.save(t, io.BytesIO())):
        with pytest.warns(UserWarning, match="will not be serialized"):
            write(t)
