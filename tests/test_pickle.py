"""Pickles and copies of functions, methods and dtypes: by their qualified names."""

import copy
import importlib
import io
import pickle
import subprocess
import sys
import warnings
import zipfile

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


@pytest.mark.parametrize("kind", ["pickle", "file"])
def test_lazy_modules(torch, kind):
    nn = torch.nn
    made = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d(dtype=torch.float64))
    if kind == "pickle":
        again = pickle.loads(pickle.dumps(made))
    else:
        file = io.BytesIO()
        torch.save(made, file)
        file.seek(0)
        again = torch.load(file, weights_only=False)
    assert repr(again) == repr(made)
    assert nn.parameter.is_lazy(again[0].weight) and nn.parameter.is_lazy(again[1].running_mean)
    assert again[0](torch.ones(2, 5)).shape == (2, 3)


def revived(cls, values):
    return cls(values)


def test_what_a_subclass_says_of_itself_goes_into_files_too(torch):
    class Noted(torch.Tensor):
        def __reduce_ex__(self, protocol):
            return revived, (list, self.tolist())

    file = io.BytesIO()
    torch.save({"x": torch.ones(2).as_subclass(Noted), "y": torch.ones(1)}, file)
    file.seek(0)
    assert torch.load(file, weights_only=False) == {"x": [1.0, 1.0], "y": torch.ones(1)}


@own
def test_classes_have_names_under_the_command():
    code = """
import pickle, torch
nn = torch.nn
for cls in (nn.UninitializedParameter, nn.UninitializedBuffer, nn.Parameter, nn.Buffer, torch.Tensor, nn.Linear):
    assert pickle.loads(pickle.dumps(cls)) is cls
print(pickle.loads(pickle.dumps(nn.LazyLinear(3))))
"""
    done = subprocess.run([sys.executable, "-m", "rustgrad", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "LazyLinear(in_features=0, out_features=3, bias=True)\n", done.stderr


# Where PyTorch's pickles look for classes that are in files of their own here.
HOMES = {
    "nn.modules.activation": "MultiheadAttention",
    "nn.modules.container": "ParameterDict ParameterList",
    "nn.modules.module": "_IncompatibleKeys",
    "optim": "Adafactor Muon",
    "optim.lr_scheduler": "ChainedScheduler CyclicLR LRScheduler OneCycleLR ReduceLROnPlateau SequentialLR",
    "distributions.transforms": "CatTransform ComposeTransform CorrCholeskyTransform IndependentTransform LowerCholeskyTransform "
    "PositiveDefiniteTransform ReshapeTransform SoftmaxTransform StackTransform StickBreakingTransform Transform _InverseTransform",
    "utils._pytree": "LeafSpec TreeSpec GetAttrKey MappingKey SequenceKey",
    "utils.data.datapipes.iter.combining": "DemultiplexerIterDataPipe ForkerIterDataPipe _ChildDataPipe",
}


@pytest.mark.parametrize("module", HOMES)
def test_classes_are_where_pytorch_has_them(torch, module):
    space = importlib.import_module(f"{torch.__name__}.{module}")
    for name in HOMES[module].split():
        cls = getattr(space, name)
        assert cls.__module__ == space.__name__ and pickle.loads(pickle.dumps(cls)) is cls


def loaded(torch, pickled):
    """What `torch.load` makes of a pickle in an archive."""
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", pickled)
            archive.writestr("archive/version", "3\n")
        file.seek(0)
        return torch.load(file, weights_only=False)


def test_result_classes_of_pytorch(torch):
    # max of PyTorch's `torch.save`: it is called with the items and a dict.
    made = loaded(torch, b"ctorch.return_types\nmax\n((I3\nI4\nt}tR.")
    assert type(made) is torch.return_types.max and (made.values, made.indices) == (3, 4)


@own
def test_functions_of_pytorch(torch):
    """Models hold them as attributes (`self.activation = torch.relu`)."""
    for owner, name, function in (
        (b"_VariableFunctionsClass", b"relu", torch.relu),
        (b"TensorBase", b"add", torch.Tensor.add),
    ):
        assert loaded(torch, b"cbuiltins\ngetattr\n(ctorch._C\n" + owner + b"\nV" + name + b"\ntR.") is function
    assert loaded(torch, b"ctorch._C._linalg\nlinalg_norm\n.") is torch.linalg.norm
    assert loaded(torch, b"ctorch._C._special\nspecial_erf\n.") is torch.special.erf
    assert loaded(torch, b"ctorch._C._nn\ngelu\n.") is torch.nn.functional.gelu
    schedules = loaded(torch, b"cbuiltins\ngetattr\n(ctorch.optim.swa_utils\nSWALR\nV_cosine_anneal\ntR.")
    assert schedules(0.5) == pytest.approx(0.5)
    with pytest.raises(pickle.UnpicklingError, match=r"needs torch\._C\.nothing, which is not here yet"):
        loaded(torch, b"ctorch._C\nnothing\n.")


@own
def test_functions_of_classes_in_checkpoints(torch):
    """By their classes: the protocol of checkpoints has no names with dots."""
    held = [torch.optim.swa_utils.SWALR._cosine_anneal, torch.Tensor.add, torch.Tensor.backward]
    with io.BytesIO() as file:
        torch.save(held, file)
        assert b"Tensor.add" not in file.getvalue() and b"getattr" in file.getvalue()
        file.seek(0)
        assert [a is b for a, b in zip(torch.load(file, weights_only=False), held, strict=True)] == [True] * 3


def test_cyclic_schedules_are_pickled(torch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    for mode in ("triangular", "triangular2", "exp_range"):
        schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, 2, 3, mode=mode, gamma=0.9)
        again = pickle.loads(pickle.dumps(schedule))
        assert type(schedule)._exp_range_scale_fn.__module__ == f"{torch.__name__}.optim.lr_scheduler"
        for _ in range(4):
            for each in (schedule, again):
                each.optimizer.step()
                each.step()
        assert again.get_last_lr() == schedule.get_last_lr()
