"""Private names of PyTorch that programs and libraries import: that they are there, and what they compute.

`golden/private_names.txt` lists them, a module a line. `golden/functional_optim.json` holds signatures and results of PyTorch's
functional optimizers, and of an optimizer that is written as libraries write theirs; `record_functional_optim.py` has both problems.
"""

import importlib
import importlib.util
import json
import logging
import math
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
RECORD = json.loads((GOLDEN / "functional_optim.json").read_text())


def _recorder():
    spec = importlib.util.spec_from_file_location("record_functional_optim", GOLDEN / "record_functional_optim.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECORDER = _recorder()
ROOT = os.environ.get("RUSTGRAD_TEST_MODULE", "rustgrad")


def listed():
    """(module, names) of the list; a line that is indented goes on."""
    text = (GOLDEN / "private_names.txt").read_text().replace("\n    ", " ")
    return [(module, names.split()) for module, _, names in (line.partition(": ") for line in text.splitlines())]


def load(path):
    return importlib.import_module(f"{ROOT}.{path}" if path else ROOT)


def test_the_names_are_there():
    missing = []
    for module, names in listed():
        owner, _, cls = module.rpartition(".")
        if module == "torch":
            home = load("")
        else:
            home = getattr(load(owner), cls) if cls[:1].isupper() else load(module)
        for name in names:
            path = f"{module}.{name}".removeprefix("torch.")
            if not hasattr(home, name) and importlib.util.find_spec(f"{ROOT}.{path}") is None:
                missing.append(path)
    assert not missing


def test_none_of_their_modules_is_loaded_before_it_is_asked_for():
    code = "import sys, rustgrad\nprint([n for n in sys.modules if n.startswith('rustgrad') and ('_names' in n or 'name_table' in n)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['rustgrad._native_names']\n" or done.stdout == "[]\n"


def test_a_name_that_is_nowhere_is_an_error(torch):
    for home in (torch, torch.nn.functional, torch.optim.adam, torch.optim.optimizer, torch.utils, torch.distributed):
        with pytest.raises(AttributeError, match="_no_such_name"):
            home._no_such_name  # noqa: B018


# --- optimizers ----------------------------------------------------------------------------------------------------


def close(got, want, tolerance=1e-9):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tolerance)
    else:
        assert math.isclose(got, want, rel_tol=tolerance, abs_tol=tolerance), f"{got} != {want}"


FUNCTIONS = dict(RECORDER.functions(ROOT))


def test_functional_optimizers_have_pytorchs_arguments():
    assert {name: RECORDER.signature(f) for name, f in FUNCTIONS.items()} == RECORD["signatures"]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functional_optimizers(torch, name):
    rule = next(r for r in sorted(RECORD["results"], key=len, reverse=True) if name.endswith(r))
    want = RECORD["results"][rule]
    got = RECORDER.run(torch, name, FUNCTIONS[name])
    # Muon iterates in bfloat16; a form for one tensor has `grads` where the function for all has another name.
    got = dict(zip(want, got.values(), strict=True)) if rule == "sgd" else got
    assert got.keys() == want.keys()
    for entry in want:
        close(got[entry], want[entry], 2e-2 if rule == "muon" else 1e-6)


def test_functional_optimizers_do_what_their_classes_do(torch):
    from rustgrad.optim.adamw import adamw

    p, q = (torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in range(2))
    optimizer = torch.optim.AdamW([p], lr=0.1)
    mean, square, step = torch.zeros(3), torch.zeros(3), torch.tensor(0.0)
    for i in range(4):
        p.grad = torch.tensor([0.5, -1.0, i])
        optimizer.step()
        options = {"beta1": 0.9, "beta2": 0.999, "lr": 0.1, "weight_decay": 0.01, "eps": 1e-8, "maximize": False}
        with torch.no_grad():
            adamw([q], [p.grad], [mean], [square], [], [step], amsgrad=False, **options)
    assert torch.equal(p, q) and torch.equal(mean, optimizer.state[p]["exp_avg"]) and step == 4


def test_functional_optimizers_refuse_what_pytorchs_refuse(torch):
    from rustgrad.optim.adam import _fused_adam, adam
    from rustgrad.optim.sgd import sgd

    options = {
        "amsgrad": False,
        "beta1": 0.9,
        "beta2": 0.9,
        "lr": 0.1,
        "weight_decay": 0,
        "eps": 1e-8,
        "maximize": False,
    }
    p, zeros = torch.ones(3), [torch.zeros(3)]
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        adam([p], [p], zeros, zeros, [], [1], **options)
    with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
        adam([p], [p], zeros, zeros, [], [torch.tensor(0.0)], grad_scale=torch.tensor(2.0), **options)
    with pytest.raises(TypeError, match=r"sgd\(\) missing a required argument"):
        sgd([p], [p], [None])
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf"):
        adam([leaf], [p], zeros, zeros, [], [torch.tensor(0.0)], **options)
    # The fused form divides by the scale, and leaves out a step whose gradients are infinite.
    grad, mean, step = torch.full((3,), 4.0), torch.zeros(3), torch.tensor(0.0)
    more = {"capturable": False, "differentiable": False, "has_complex": False, "decoupled_weight_decay": False}
    lists = [p], [grad], [mean], [torch.zeros(3)], [], [step]
    _fused_adam(*lists, torch.tensor(2.0), torch.tensor(1.0), **options, **more)
    assert step == 0 and p[0] == 1
    _fused_adam(*lists, torch.tensor(2.0), torch.tensor(0.0), **options, **more)
    assert step == 1 and grad[0] == 2 and math.isclose(mean[0].item(), 0.2, rel_tol=1e-6)


@pytest.mark.parametrize("foreach", [False, True])
def test_an_optimizer_of_a_program(torch, foreach):
    (params, steps), (want, want_steps) = RECORDER.train(torch, foreach), RECORD["program"]
    assert steps == want_steps
    close(params, want, 1e-9)


def test_helpers_of_optimizers(torch):
    from rustgrad.optim import optimizer as o

    assert o._default_to_fused_or_foreach([torch.ones(2)], False, True) == (True, False)
    assert o._default_to_fused_or_foreach([torch.ones(2)], True, True) == (False, False)
    assert o._default_to_fused_or_foreach([torch.ones(2)], False) == (False, False)
    assert (
        o._get_value(torch.tensor(2.0)) == 2 and o._dispatch_sqrt(4) == 2 and o._dispatch_sqrt(torch.tensor(9.0)) == 3
    )
    assert o._to_scalar(torch.ones(1)).shape == () and o._to_scalar(3) == 3
    pairs = [[torch.ones(2, dtype=torch.cfloat), torch.ones(2)] for _ in range(2)]
    o._view_as_real(*pairs)
    assert [t.shape for pair in pairs for t in pair] == [(2, 2), (2,)] * 2
    with pytest.raises(RuntimeError, match="requires all the params to be floating point"):
        o._device_dtype_check_for_fused(torch.ones(2, dtype=torch.int))
    old = importlib.import_module("rustgrad.optim._multi_tensor").Adam([torch.ones(1)], lr=0.5)
    assert isinstance(old, torch.optim.Adam) and old.defaults["foreach"] is True


def test_helpers_of_schedulers(torch):
    from rustgrad.optim import lr_scheduler as l

    scheduler = l.StepLR(torch.optim.SGD([torch.ones(1)], 0.1), 1)
    with pytest.warns(UserWarning, match="use `get_last_lr"):
        l._warn_get_lr_called_within_step(scheduler)
    with l._enable_get_lr_call(scheduler), l._initial_mode(scheduler):
        assert scheduler._get_lr_called_within_step and scheduler._is_initial
    assert not scheduler._get_lr_called_within_step and not scheduler._is_initial


# --- layers --------------------------------------------------------------------------------------------------------


def test_helpers_of_functions_of_layers(torch):
    F = torch.nn.functional
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert [F._get_softmax_dim("softmax", n, 2) for n in range(5)] == [0, 0, 1, 0, 1]
    assert F._unpool_output_size(torch.ones(1, 1, 2, 3), [2, 2], [2, 2], [0, 0], None) == [4, 6]
    assert F._unpool_output_size(torch.ones(1, 1, 2, 3), [2, 2], [2, 2], [0, 0], [1, 1, 5, 7]) == [5, 7]
    with pytest.raises(ValueError, match="must be between 2 and 6"):
        F._unpool_output_size(torch.ones(1, 1, 2, 3), [2, 2], [2, 2], [0, 0], [6, 6])
    F._verify_batch_size([2, 3])
    for check, size in ((F._verify_batch_size, [1, 3]), (F._verify_spatial_size, [2, 3, 1, 1])):
        with pytest.raises(ValueError, match="when training"):
            check(size)
    assert [F._Reduction.get_enum(r) for r in ("none", "mean", "sum")] == [0, 1, 2]
    choose = F.boolean_dispatch(
        "both", 1, False, lambda x, both=True: "yes", lambda x, both=False: "no", None, "choose"
    )
    assert [choose(1), choose(1, True), choose(1, both=True), choose.__name__] == ["no", "yes", "yes", "choose"]
    q, w = torch.randn(2, 3), torch.randn(9, 3)
    for got, want in zip(F._in_projection_packed(q, q, q, w), (q @ w.T).chunk(3, -1), strict=True):
        assert torch.allclose(got, want)
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    F._no_grad_embedding_renorm_(table, torch.tensor([0, 1]), 1.0, 2.0)
    assert torch.allclose(table, torch.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]]))
    grad, out = torch.tensor([1.0, 2.0]), torch.tensor([0.3, 0.7])
    assert torch.allclose(torch._softmax_backward_data(grad, out, 0, torch.float32), torch.tensor([-0.21, 0.21]))


def test_helpers_of_modules(torch):
    from rustgrad.nn.modules.activation import _check_arg_device
    from rustgrad.nn.modules.module import _has_any_global_hook, register_module_forward_hook
    from rustgrad.nn.modules.transformer import _get_activation_fn, _get_clones, _get_seq_len

    layers = _get_clones(torch.nn.Linear(2, 2), 3)
    assert len(layers) == 3 and layers[0].weight is not layers[1].weight
    assert _get_activation_fn("gelu") is torch.nn.functional.gelu
    with pytest.raises(RuntimeError, match="relu/gelu"):
        _get_activation_fn("tanh")
    assert _get_seq_len(torch.ones(2, 5, 3), True) == 5 and _get_seq_len(torch.ones(2, 5, 3), False) == 2
    assert _check_arg_device(torch.ones(1)) and _check_arg_device(None)
    assert not _has_any_global_hook()
    handle = register_module_forward_hook(lambda *args: None)
    assert _has_any_global_hook()
    handle.remove()
    p = torch.nn.Parameter(torch.ones(3))
    torch.nn.init._no_grad_fill_(p, 2.0)
    assert p.requires_grad and p.tolist() == [2, 2, 2]


def test_tensors_over_devices(torch):
    from rustgrad.nn.parallel import _functions, comm

    x = torch.arange(6.0).view(3, 2).requires_grad_()
    pieces = comm.scatter(x, [-1, -1])
    assert [p.shape for p in pieces] == [(2, 2), (1, 2)]
    assert torch.equal(comm.gather(pieces, 0, -1), x)
    assert torch.equal(comm.reduce_add([x, x, x]), 3 * x)
    with pytest.raises(ValueError, match="input 1 has invalid size: got 2, but expected 3 x 2"):
        comm.reduce_add([x, torch.ones(2)])
    copies = _functions.Broadcast.apply([-1, -1], x, torch.ones(2))
    assert [c.shape for c in copies] == [(3, 2), (2,)] * 2
    sum(c.sum() for c in copies).backward()
    assert x.grad.tolist() == [[2, 2]] * 3
    with pytest.raises(RuntimeError, match="exactly one of 'devices' and 'out'"):
        comm.broadcast(x)


def test_members_by_name(torch):
    from rustgrad.nn.utils._named_member_accessor import NamedMemberAccessor

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.BatchNorm1d(2)))
    access = NamedMemberAccessor(model)
    weight, new = model[0].weight, torch.ones(2, 2)
    assert access.get_tensor("0.weight") is weight and access.get_submodule("1.0") is model[1][0]
    assert access.swap_tensor("0.weight", new) is weight and model[0].weight is new
    before, missing = access.swap_tensors_dict({"0.weight": weight, "1.0.running_mean": torch.ones(2)})
    assert before["0.weight"] is new and not missing and model[1][0].running_mean.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): '0.other'"):
        access.swap_tensors_dict({"0.weight": new, "0.other": new})
    assert model[0].weight is weight
    assert access.check_keys(["0.weight", "x"])[1] == ["x"]
    access.del_tensor("0.bias")
    with pytest.raises(AttributeError, match="has no attribute `bias`"):
        access.get_tensor("0.bias")


# --- the top of the package ----------------------------------------------------------------------------------------


def test_versions():
    from rustgrad._vendor.packaging.version import InvalidVersion, Version, parse
    from rustgrad.torch_version import TorchVersion

    ordered = [
        "1.0.dev1",
        "1.0a1.dev2",
        "1.0a1",
        "1.0b2",
        "1.0rc1",
        "1.0",
        "1.0+cpu",
        "1.0+cu12.1",
        "1.0.post1",
        "1.1.dev1",
        "1!0.5",
    ]
    assert sorted(reversed(ordered), key=Version) == ordered
    assert parse("1.0") == parse("1.0.0") == parse("v1") and hash(parse("1.0")) == hash(parse("1.0.0"))
    full = Version("1!2.3.4-alpha.5.post6.dev7+Local_8")
    assert str(full) == "1!2.3.4a5.post6.dev7+local.8" and full.base_version == "1!2.3.4" and full.local == "local.8"
    assert (full.major, full.minor, full.micro) == (2, 3, 4) and full.is_prerelease and not parse("1.0").is_prerelease
    with pytest.raises(InvalidVersion):
        Version("parrot")
    version = TorchVersion("2.15.0+x")
    assert (
        version >= "2.4" and version > (2, 4) and version < (2, 16, 0) and not version < "2.4" and version == "2.15.0+x"
    )
    assert not version > "abc" and version.split(".")[0] == "2" and version is not None and version != None  # noqa: E711
    with pytest.raises(TypeError):
        version > 1  # noqa: B015


def test_the_version_under_the_command_compares_as_a_version():
    code = "import torch; print(torch.__version__ >= '2.4', torch.__version__ >= (2, 0), torch.__version__ < '3')"
    done = subprocess.run([sys.executable, "-m", "rustgrad", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\n"


def test_shapes_and_types(torch):
    P = importlib.import_module("rustgrad._prims_common")
    kinds = P.ELEMENTWISE_TYPE_PROMOTION_KIND
    assert P.make_contiguous_strides_for((2, 0, 4)) == (4, 4, 1)
    assert P.make_channels_last_strides_for((1, 2, 3, 4)) == (24, 1, 8, 2)
    assert P.compute_required_storage_length((2, 3), (3, 1), 1) == 7
    assert P.canonicalize_dims(3, (0, -1)) == (0, 2) and P.canonicalize_dim(0, 0) == 0
    assert P.infer_size((2, -1), 6) == (2, 3) and P.reduction_dims((2, 3), (-1,)) == (1,)
    half, whole, one = torch.ones(1, dtype=torch.half), torch.ones(1, dtype=torch.int), torch.tensor(2.0)
    for args, kind, want in (
        ((torch.ones(1), half), kinds.DEFAULT, (torch.float32, torch.float32)),
        ((half, one, 3.0), kinds.DEFAULT, (torch.float32, torch.float16)),
        ((whole, one), kinds.DEFAULT, (torch.float32, torch.float32)),
        ((whole,), kinds.INT_TO_FLOAT, (torch.float32, torch.float32)),
        ((whole,), kinds.ALWAYS_BOOL, (torch.int32, torch.bool)),
    ):
        assert P.elementwise_dtypes(*args, type_promotion_kind=kind) == want
    assert P.clone_preserve_strides(torch.ones(2, 3).T).stride() == (1, 3)
    for call, error in (
        (lambda: P.canonicalize_dim(2, 5), IndexError),
        (lambda: P.reduction_dims((2, 3), (0, 0)), RuntimeError),
        (lambda: P.infer_size((2, -1), 7), RuntimeError),
        (lambda: P.check_is_matrix(torch.ones(2), "f"), RuntimeError),
    ):
        with pytest.raises(error):
            call()


def test_helpers_of_tensors(torch):
    U, T = importlib.import_module("rustgrad._utils"), importlib.import_module("rustgrad._tensor")
    a, b, c, d = torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.int), torch.ones(1)
    assert [[t.numel() for t in bucket] for bucket in U._take_tensors([a, b, c, d], 16)] == [[2], [3, 1], [2]]
    assert [t.dtype for t in U._reorder_tensors_as([d, c], [c, d])] == [torch.int32, torch.float32]
    assert U._import_dotted_name("os.path.join") is os.path.join and U.is_compiling() is False
    assert U.render_call(torch.add, (a,), {"x": 1}) == "torch.add(tensor([...], size=(2,)), x=1)"

    class Sub(torch.Tensor):
        pass

    class Named:
        @U.classproperty
        def name(cls):
            return cls.__name__

    assert Named.name == "Named"
    assert [type(t) for t in T._convert([a, a], Sub)] == [Sub, Sub] and T._convert(a, torch.Tensor) is a

    @T._handle_torch_function_and_wrap_type_error_to_not_implemented
    def fails(x, y):
        raise TypeError

    assert fails(a, 2) is NotImplemented
    shown = importlib.import_module("rustgrad._tensor_str")
    with shown.printoptions(precision=2):
        assert shown._str(torch.tensor([1.23456])) == "tensor([1.23])"
    assert shown._str(a) == "tensor([1., 1.])" and shown._str(a, tensor_contents="[..]") == "tensor([..])"
    L = importlib.import_module("rustgrad._linalg_utils")
    values, vectors = L.symeig(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), largest=True)
    assert torch.allclose(values, torch.tensor([3.0, 1.0])) and L.matmul(None, a) is a
    basis = importlib.import_module("rustgrad._lowrank").get_approximate_basis(torch.randn(5, 4), 2)
    assert torch.allclose(basis.T @ basis, torch.eye(2), atol=1e-5)
    assert importlib.import_module("rustgrad._VF").lstm is torch._C.ops["lstm"]


def test_branches_and_loops(torch):
    up, down = (lambda x: x + 1), (lambda x: x - 1)
    assert torch.cond(torch.tensor(True), up, down, (torch.ones(2),)).tolist() == [2, 2]
    assert torch.cond(False, up, down, [torch.ones(2)]).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="single-element tensor"):
        torch.cond(torch.ones(2) > 0, up, down, (torch.ones(2),))
    count, x = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    assert count == 3 and x.tolist() == [8, 8]
    private = importlib.import_module(f"{torch.__name__}._higher_order_ops.while_loop")
    assert private.while_loop(lambda i: i < 2, lambda i: (i + 1,), (torch.tensor(0),))[0] == 2
    assert (torch.sym_int(-2.7), torch.sym_max(1, 2.0), torch.sym_min(1, 2.0), torch.sym_sum([1, 2, 3])) == (
        -2,
        2.0,
        1.0,
        6,
    )
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]


def test_loops_over_a_dimension(torch):
    higher = importlib.import_module(f"{torch.__name__}._higher_order_ops")
    x = torch.arange(6.0).view(3, 2)
    mapped = higher.map(lambda pair, c: {"sum": pair[0] + pair[1] * c}, [x, torch.arange(3.0)], torch.tensor(2.0))
    assert mapped["sum"].tolist() == [[0, 1], [4, 5], [8, 9]]
    for xs, match in (
        (torch.ones(0, 2), "cannot be 0"),
        ([x, torch.ones(2)], "consistent"),
        ([x, 3], "only consist of"),
    ):
        with pytest.raises(RuntimeError, match=match):
            higher.map(lambda x: x, xs)

    def step(carry, x):
        return carry + x, carry * x

    last, each = higher.scan(step, torch.zeros(2), x)
    assert last.tolist() == [6, 9] and each.tolist() == [[0, 0], [0, 3], [8, 20]]
    assert higher.scan(step, torch.zeros(2), x, reverse=True)[1].tolist() == [[0, 8], [8, 15], [0, 0]]
    last, each = higher.scan(step, torch.zeros(3), x, dim=-1)
    assert last.tolist() == [1, 5, 9] and each.tolist() == [[0, 0], [0, 6], [0, 20]]
    last, each = higher.scan(lambda c, _: (c + 1, (c * 2, None)), torch.zeros(1), None, length=2)
    assert last.item() == 2 and each[0].tolist() == [[0], [2]] and each[1] is None
    assert higher.scan(step, torch.zeros(2), x[:0])[1].shape == (0, 2)
    assert higher.scan(lambda c, _: (c, c), torch.zeros(3), None, length=0)[1].shape == (0, 3)
    w = torch.ones(2, requires_grad=True)
    last, each = higher.scan(lambda c, x: (c * w + x, c * x), torch.zeros(2), x)
    (last.sum() + each.square().sum()).backward()
    assert w.grad.tolist() == [2, 205]
    wrong = [
        (lambda c, x: (c[:1], x), {}, "state that combine_fn returns"),
        (step, {"length": 4}, "does not match"),
        (3, {}, "must be a callable"),
        (step, {"reverse": 1}, "Reverse must be a bool"),
    ]
    for function, options, match in wrong:
        with pytest.raises(RuntimeError, match=match):
            higher.scan(function, torch.zeros(2), x, **options)


def test_loggers():
    from rustgrad._logging import getArtifactLogger, set_logs, warning_once

    said = []
    log = logging.getLogger("rustgrad.tests.once")
    log.addHandler(type("Kept", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())
    for text in ("a", "a", "b"):
        warning_once(log, text)
    assert said == ["a", "b"]
    assert getArtifactLogger("torch.x", "graph_breaks").name == "torch.x.__graph_breaks"
    set_logs(dynamo=logging.ERROR, graph_breaks=True)
    assert logging.getLogger("torch._dynamo").level == logging.ERROR
    set_logs(all=logging.NOTSET)


def test_pickles_of_data_alone(torch, tmp_path):
    from rustgrad import _weights_only_unpickler as w

    (tmp_path / "data").write_bytes(b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01]q\x02(K\x01K\x02es.")
    (tmp_path / "bad").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    assert w.load((tmp_path / "data").open("rb")) == {"a": [1, 2]}
    with pytest.raises(w.UnpicklingError, match="GLOBAL os.system"):
        w.load((tmp_path / "bad").open("rb"))
    assert w.get_globals_in_pkl((tmp_path / "bad").open("rb")) == {"os.system"}


# --- utils and autograd --------------------------------------------------------------------------------------------


def test_contexts_and_sets(torch, tmp_path):
    from rustgrad.utils._contextlib import _DecoratorContextManager, context_decorator
    from rustgrad.utils._device import DeviceContext, set_device
    from rustgrad.utils._ordered_set import OrderedSet
    from rustgrad.utils._typing_utils import not_none
    from rustgrad.utils.file_baton import FileBaton

    depth = []

    class Block(_DecoratorContextManager):
        def __enter__(self):
            depth.append(1)

        def __exit__(self, *error):
            depth.pop()

    assert Block()(lambda: len(depth))() == 1 and context_decorator(Block, lambda: len(depth))() == 1 and not depth
    with DeviceContext("meta"):
        assert torch.ones(2).is_meta
    assert set_device("meta")(lambda: torch.ones(2).is_meta)() and not torch.ones(2).is_meta

    @set_device("meta")
    def turns():
        yield torch.ones(2).is_meta
        yield torch.ones(2).is_meta

    assert [(on_meta, torch.ones(2).is_meta) for on_meta in turns()] == [(True, False)] * 2
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        set_device("meta")(type("Made", (), {}))
    s = OrderedSet([3, 1, 3])
    assert list(s | {2}) == [3, 1, 2] and list(s - {3}) == [1] and s == {1, 3} and s.pop() == 1 and list(s) == [3]
    with pytest.raises(TypeError):
        hash(s)
    with pytest.raises(TypeError, match="value was None"):
        not_none(None)
    first, second = (FileBaton(str(tmp_path / "lock"), wait_seconds=0.01) for _ in range(2))
    assert first.try_acquire() and not second.try_acquire()
    threading.Timer(0.05, first.release).start()
    second.wait()
    assert second.try_acquire()
    second.release()


def test_the_engine_by_its_private_names(torch):
    gradcheck = importlib.import_module("rustgrad.autograd.gradcheck")
    run = torch.autograd.graph._engine_run_backward
    x = torch.ones(2, requires_grad=True)
    y, one = (x * 2).sum(), torch.tensor(1.0)
    assert run((y,), (one,), True, False, (x,), True, accumulate_grad=False)[0].tolist() == [2, 2]
    assert run((y,), (one,), True, False, (), True, accumulate_grad=True) is None and x.grad.tolist() == [2, 2]
    assert torch.autograd.Variable._execution_engine.run_backward((y,), (one,), True, False, (x,))[0].tolist() == [2, 2]
    assert torch.autograd._make_grads((y,), (None,), False)[0] == 1
    double = torch.ones(2, dtype=torch.double, requires_grad=True)
    with pytest.warns(FutureWarning, match="private API"):
        numerical = gradcheck.get_numerical_jacobian(lambda given: given[0] ** 2, [double], eps=1e-6)
    assert torch.allclose(numerical[0], 2 * torch.eye(2, dtype=torch.double))
    with pytest.warns(FutureWarning, match="private API"):
        analytical = gradcheck.get_analytical_jacobian((double,), double**2)
    assert torch.equal(analytical[0][0], 2 * torch.eye(2, dtype=torch.double)) and analytical[1:] == (True, True, True)
    functional = importlib.import_module("rustgrad.autograd.functional")
    with pytest.raises(RuntimeError, match="The gradient with respect to input 0 is independent"):
        functional._check_requires_grad((torch.ones(1),), "grad_inputs", True)
    profiler = importlib.import_module("rustgrad.autograd.profiler_util")
    shown = [
        profiler._format_time(12.5),
        profiler._format_time(1.25e6),
        profiler._format_memory(2048),
        profiler._format_time_share(1, 3),
    ]
    assert shown == ["12.500us", "1.250s", "2.00 KB", "33.33%"]


def test_helpers_of_checkpoints_and_loaders(torch):
    from rustgrad.utils.checkpoint import _get_autocast_kwargs, _infer_device_type
    from rustgrad.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher

    assert _infer_device_type(torch.ones(1), [torch.ones(1)]) == "cpu"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert _get_autocast_kwargs("cpu")[1] == {"enabled": True, "dtype": torch.bfloat16, "cache_enabled": True}
    assert _MapDatasetFetcher([1, 2, 3], True, list, False).fetch([2, 0]) == [3, 1]
    stream = _IterableDatasetFetcher(iter([1, 2, 3]), True, list, False)
    assert [stream.fetch([None] * 2), stream.fetch([None] * 2)] == [[1, 2], [3]]
    with pytest.raises(StopIteration):
        stream.fetch([None])


# --- one process ---------------------------------------------------------------------------------------------------


def test_modules_that_recompute_their_activations(torch):
    from rustgrad.distributed.algorithms._checkpoint import checkpoint_wrapper as c

    nn = torch.nn
    plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
    x = torch.randn(4, 2)
    want = plain(x)
    want.sum().backward()
    grads = [p.grad.clone() for p in plain.parameters()]
    keys = list(plain.state_dict())
    c.apply_activation_checkpointing(plain, check_fn=lambda m: isinstance(m, nn.Linear))
    assert isinstance(plain[0], c.CheckpointWrapper) and isinstance(plain[2][0], c.CheckpointWrapper)
    assert list(plain.state_dict()) == keys and plain[0].weight.shape == (3, 2)
    assert [n for n, _ in plain[0].named_parameters()] == ["weight", "bias"]
    plain.load_state_dict(plain.state_dict())
    plain.zero_grad()
    assert torch.equal(plain(x), want)
    plain(x).sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(plain.parameters(), grads, strict=True))
    calls = []
    counted = nn.Linear(2, 2)
    counted.register_forward_hook(lambda *args: calls.append(1))
    for kind in c.CheckpointImpl:
        c.checkpoint_wrapper(counted, kind)(input=x.clone().requires_grad_()).sum().backward()
    assert len(calls) >= 3
    assert torch.equal(c.offload_wrapper(counted)(x), counted(x))


def test_policies_of_wrapping(torch):
    import functools

    from rustgrad.distributed.fsdp import wrap

    nn = torch.nn

    class Wrapper(nn.Module):
        def __init__(self, module, **options):
            super().__init__()
            self.module, self.options = module, options

    def model():
        return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))

    def wrapped(policy):
        made, count = wrap._recursive_wrap(model(), policy, Wrapper, set(), set())
        return [name for name, m in made.named_modules() if isinstance(m, Wrapper)], count

    by_class = functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear})
    assert wrapped(by_class) == (["0", "2.0"], 17) == wrapped(wrap.ModuleWrapPolicy([nn.Linear]))
    assert wrapped(functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=9)) == (["0"], 9)
    assert wrapped(functools.partial(wrap._or_policy, policies=[by_class])) == (["0", "2.0"], 17)
    chosen = wrap.CustomPolicy(lambda m: {"a": 1} if isinstance(m, nn.ReLU) else False)._run_policy(
        model(), set(), {"b": 2}
    )
    assert list(chosen.values()) == [{"b": 2, "a": 1}]
    with wrap.enable_wrap(wrapper_cls=Wrapper, a=1):
        assert wrap.wrap(nn.ReLU(), b=2).options == {"a": 1, "b": 2}
    assert isinstance(wrap.wrap(nn.ReLU()), nn.ReLU)


def test_stores(torch):
    dist = torch.distributed
    store = dist.HashStore()
    store.set("k", "v")
    assert store.get("k") == b"v" and store.add("n", 3) == 3 and store.add("n", 2) == 5 and store.get("n") == b"5"
    assert [store.compare_set("q", *two) for two in (("", "1"), ("1", "2"), ("5", "7"))] == [b"1", b"2", b"2"]
    assert store.delete_key("k") and not store.check(["k"]) and store.num_keys() == 2
    with pytest.raises(dist.DistStoreError, match="wait timeout"):
        store.wait(["late"], timedelta(milliseconds=20))
    threading.Timer(0.05, store.set, ("late", b"now")).start()
    assert store.get("late") == b"now"
    below = dist.PrefixStore("pre", store)
    below.set("z", "1")
    below.append("z", "2")
    assert store.get("pre/z") == b"12" == below.get("z") and below.num_keys() == 4


def test_join_and_collectives_that_return(torch):
    from rustgrad.distributed import _functional_collectives as collectives
    from rustgrad.distributed.algorithms.join import Join, Joinable, JoinHook

    ends = []

    class Hook(JoinHook):
        def post_hook(self, is_last_joiner):
            ends.append(is_last_joiner)

    class Counted(Joinable):
        join_device = torch.device("cpu")

        @property
        def join_process_group(self):
            return torch.distributed.group.WORLD

        def __init__(self):
            super().__init__()

        def join_hook(self, **options):
            ends.append(options)
            return Hook()

    with pytest.raises(ValueError, match="at least one"):
        Join([])
    torch.distributed.init_process_group(store=torch.distributed.HashStore(), world_size=1, rank=0)
    try:
        with Join([Counted()], rate=1):
            pass
        assert ends == [{"rate": 1}, True]
        x = torch.ones(2, requires_grad=True)
        collectives.wait_tensor(collectives.all_reduce(x, "sum", [0])).sum().backward()
        assert x.grad.tolist() == [1, 1]
        with pytest.raises(ValueError, match="expected all ranks of the world of 1"):
            collectives.all_reduce(x, "sum", [0, 1])
    finally:
        torch.distributed.destroy_process_group()


def test_the_launcher_runs_a_world_of_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "print(dist.get_rank(), dist.get_world_size(), os.environ['LOCAL_RANK'], os.environ['MASTER_PORT'], sys.argv[1:])\n"
        "sys.exit(3)\n"
    )
    for name, last in (("run", ""), ("launch", ", '--local-rank=0'")):
        command = [sys.executable, "-m", f"rustgrad.distributed.{name}", "--nproc_per_node=1", "--master_port", "1234"]
        done = subprocess.run([*command, script, "--lr", "1"], capture_output=True, text=True)
        assert (done.stdout, done.returncode) == (f"0 1 0 1234 ['--lr', '1'{last}]\n", 1), done.stderr
        assert "ended with exit code 3" in done.stderr
