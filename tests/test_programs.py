"""What libraries ask of PyTorch beside its ops: classes' modules, notes on functions, names to import, loaders of their own."""

import copy
import importlib
import operator
import os
import subprocess
import sys
import textwrap
import typing

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")


def run(tmp_path, program):
    """The lines that a program prints under `python -m rustgrad`."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "-m", "rustgrad", str(script)], capture_output=True, text=True, timeout=300, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@own
def test_classes_say_that_they_are_of_torch(tmp_path):
    """opt_einsum and others find the library of an array by the module of its class; a subclass still calls its ops."""
    program = """
    import pickle
    import torch

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    for c in (torch.Tensor, torch.Size, torch.device, torch.dtype, torch.finfo, torch.layout, torch.Generator):
        print(c)
    s = torch.ones(2).as_subclass(Sub)
    print(0.5 + s, 2 / s, s @ s)
    print(pickle.loads(pickle.dumps((torch.float32, torch.ones(2).shape, torch.device("cpu"), torch.ones(1)))))
    print(torch.TensorType.__name__, torch.DeviceObjType.__name__)
    """
    names = [f"<class 'torch.{n}'>" for n in "Tensor Size device dtype finfo layout _C.Generator".split()]
    assert run(tmp_path, program) == [
        *names,
        "Sub([1.5000, 1.5000]) Sub([2., 2.]) Sub(2.)",
        "(torch.float32, torch.Size([2]), device(type='cpu'), tensor([1.]))",
        "TensorType DeviceObjType",
    ]


@own
def test_compiled_functions_name_torch(tmp_path):
    """The audit of what a function reads knows the package under the name of `torch`, and its classes."""
    program = """
    import torch

    @torch.compile(fullgraph=True)
    def f(x):
        assert isinstance(x, torch.Tensor)
        return torch.sin(x).to(torch.float64) + torch.nn.functional.relu(x)

    print(f(torch.zeros(2)))
    model = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()), fullgraph=True)
    print(model(torch.ones(1, 2)).shape)
    """
    assert run(tmp_path, program) == ["tensor([0., 0.], dtype=torch.float64)", "torch.Size([1, 1])"]


@own
def test_functorch(tmp_path):
    program = """
    import functorch, torch
    from functorch import make_functional, make_functional_with_buffers, combine_state_for_ensemble, vmap, jacrev
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    f, params = make_functional(model)
    print(torch.equal(f(params, x), model(x)), [p.is_leaf and p.requires_grad for p in params])
    print(functorch.grad(lambda p: f(p, x).sum())(params)[1])
    bn = torch.nn.BatchNorm1d(3)
    try:
        make_functional(bn)
    except RuntimeError as e:
        print("make_functional_with_buffers" in str(e))
    g, p, b = make_functional_with_buffers(bn.eval())
    print(torch.equal(g(p, b, x), bn(x)), len(b))
    from functorch.experimental import control_flow, replace_all_batch_norm_modules_
    print(control_flow.map(torch.sum, x).tolist(), replace_all_batch_norm_modules_(bn).running_mean)
    h, ps, bs = combine_state_for_ensemble([torch.nn.Linear(3, 2) for _ in range(5)])
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.ones(2))
            self.register_buffer("b", self.a)
        def forward(self, x):
            return x * self.a + self.b
    tied = Tied()
    k, p, b = make_functional_with_buffers(tied)
    print(len(b), k(p, (b[0] * 2,), torch.ones(2)))
    print(vmap(h, (0, 0, None))(ps, bs, x).shape, jacrev(torch.sin)(torch.zeros(2)))
    """
    assert run(tmp_path, program) == [
        "True [True, True]",
        "tensor([4., 4.])",
        "True",
        "True 3",
        "[3.0, 3.0, 3.0, 3.0] None",
        "1 tensor([4., 4.])",
        "torch.Size([5, 4, 2]) tensor([[1., 0.],\n        [0., 1.]])".split("\n")[0],
        "        [0., 1.]])",
    ]


@own
def test_functions_take_notes(torch):
    """Libraries mark functions of `nn.functional`, which in PyTorch are written in Python."""
    relu = torch.nn.functional.relu
    relu._note = [1]
    try:
        assert torch.nn.functional.relu._note == [1] and vars(relu) == {"_note": [1]}
    finally:
        del relu._note
    assert not hasattr(relu, "_note") and torch.meshgrid.__kwdefaults__ == {"indexing": None}
    with pytest.raises(AttributeError):
        relu.__name__ = "other"


def test_operators_hand_over_the_methods_of_pytorch(torch):
    seen = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    s, i, T = torch.ones(1).as_subclass(Sub), torch.ones(1, dtype=torch.int64).as_subclass(Sub), torch.Tensor
    cases = [
        (operator.add, (2, s), T.add), (operator.mul, (2, s), T.mul), (operator.sub, (2, s), T.__rsub__),
        (operator.truediv, (2, s), T.__rdiv__), (operator.floordiv, (s, 2), T.__floordiv__), (operator.and_, (i, 1), T.__and__),
        (operator.or_, (1, i), T.bitwise_or), (operator.xor, (i, i), T.__xor__), (operator.lshift, (i, 1), T.__lshift__),
        (operator.invert, (i,), T.__invert__), (operator.eq, (s, 1), T.__eq__), (operator.lt, (s, 1), T.lt),
    ]  # fmt: skip
    for function, args, method in cases:
        seen.clear()
        function(*args)
        assert seen == [method], function


def test_a_traced_assert(torch):
    fx = importlib.import_module(f"{torch.__name__}.fx")

    def f(x):
        torch._assert(x.shape[0] == 2, "two rows")
        return x + 1

    graph = fx.symbolic_trace(f)
    assert "_assert" in graph.code and graph(torch.zeros(2)).tolist() == [1, 1]
    with pytest.raises(AssertionError, match="two rows"):
        graph(torch.zeros(3))


def test_annotations_of_layers_are_types(torch):
    """fastai evaluates what a layer gives as its annotations among its own names."""
    for layer in (torch.nn.CrossEntropyLoss(), torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Conv2d(1, 1, 1)):
        typing.get_type_hints(layer, globalns={}, localns={})
    assert torch.nn.Module.__annotations__["training"] is bool


def test_collate_takes_types_of_the_program(torch):
    collate = importlib.import_module(f"{torch.__name__}.utils.data._utils.collate")

    class Point:
        def __init__(self, x):
            self.x = x

    def points(batch, *, collate_fn_map=None):
        return collate.collate([p.x for p in batch], collate_fn_map=collate_fn_map)

    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        collate.default_collate([Point(1), Point(2)])
    collate.default_collate_fn_map[Point] = points
    try:
        made = torch.utils.data.default_collate([{"p": (Point(1), "a")}, {"p": (Point(2), "b")}])
        assert made["p"][0].tolist() == [1, 2] and made["p"][1] in (("a", "b"), ["a", "b"])
    finally:
        del collate.default_collate_fn_map[Point]
    only = {torch.Tensor: lambda batch, collate_fn_map=None: list(batch)}
    assert len(collate.collate([torch.ones(1), torch.ones(2)], collate_fn_map=only)) == 2
    with pytest.raises(TypeError):
        collate.collate([1, 2], collate_fn_map=only)
    assert collate.np_str_obj_array_pattern.search("<U3") and not collate.np_str_obj_array_pattern.search("<f4")


def test_an_iterator_of_a_loader_that_is_no_dataloader(torch):
    """fastai hands the iterators an object with the attributes that PyTorch's loader has."""
    module = importlib.import_module(f"{torch.__name__}.utils.data.dataloader")

    class Loader:
        dataset = range(3)
        _IterableDataset_len_called, _auto_collation, drop_last, num_workers, timeout = None, False, False, 0, 0
        collate_fn, generator, pin_memory, pin_memory_device, prefetch_factor = (
            staticmethod(lambda x: x),
            None,
            False,
            "",
            None,
        )
        _dataset_kind = module._DatasetKind.Iterable
        _index_sampler = range(10**6)
        multiprocessing_context, worker_init_fn, persistent_workers, in_order = None, None, False, True

        def _get_shared_seed(self):
            return None

    assert list(module._SingleProcessDataLoaderIter(Loader())) == [0, 1, 2]


@own
def test_names_of_devices_and_extensions(torch):
    from rustgrad.utils import cpp_extension
    from rustgrad.utils.data._utils.pin_memory import pin_memory

    with torch.cuda.device(0), torch.cuda.device_of(torch.ones(1)), torch.cuda.device("cuda:0"):
        pass
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.cuda.device("cpu")
    assert torch.cuda.get_arch_list() == [] and torch.cuda.is_current_stream_capturing() is False
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        torch.cuda.nvtx.range_push("a")
    with pytest.raises(RuntimeError, match="NVTX"), torch.cuda.nvtx.range("a"):
        pass
    with pytest.raises(RuntimeError, match="there is no CUDA"):
        torch.cuda.mem_get_info()
    torch.cuda.random.manual_seed(0)
    assert torch.cuda._initialized is False
    for part in ("graphs", "memory", "random", "streams"):
        names = vars(importlib.import_module(f"rustgrad.cuda.{part}"))
        assert part in dir(torch.cuda)
        assert all(names[name] is getattr(torch.cuda, name) for name in names["__all__"])
    for refuses in (cpp_extension.load, cpp_extension.load_inline, cpp_extension.CppExtension):
        with pytest.raises(NotImplementedError, match="C\\+\\+ interface, which is not here"):
            refuses("name", [])
    assert torch.get_device_module("cpu") is torch.cpu and torch.get_device_module(torch.device("cpu")) is torch.cpu
    with pytest.raises(RuntimeError, match="Invalid device module 'xyz'"):
        torch.get_device_module("xyz")
    x = [torch.ones(1)]
    assert pin_memory(x) is x and torch.serialization.DEFAULT_PROTOCOL == 2
    assert torch.backends.flags_frozen() is False


def test_streams_of_the_cpu(torch):
    stream, event = torch.Stream("cpu"), torch.Event("cpu")
    assert stream.device == event.device == torch.device("cpu") and isinstance(stream, torch.Stream)
    assert stream.query()
    stream.synchronize()


@own
def test_events_tell_time(torch):
    stream, start, end = (
        torch.Stream("cpu"),
        torch.Event("cpu", enable_timing=True),
        torch.Event("cpu", enable_timing=True),
    )
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    with stream:
        start.record(stream)
        assert stream.record_event(end) is end and end.query() and start.elapsed_time(end) >= 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(torch.Event("cpu"))


@own
def test_a_device_mesh_of_one_process(torch):
    dist = torch.distributed
    try:
        mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
        assert dist.is_initialized() and (mesh.ndim, mesh.shape, mesh.size(), mesh.size(0)) == (2, (1, 1), 1, 1)
        assert mesh.get_coordinate() == (0, 0) and mesh.get_rank() == mesh.get_local_rank("model") == 0
        assert mesh["data"] == mesh["data"] != mesh and dist.get_world_size(mesh["data"].get_group()) == 1
        assert repr(mesh) == "DeviceMesh((data=1, model=1), 'cpu', stride=(1, 1))"
        assert repr(dist.DeviceMesh("cpu", [0])) == "DeviceMesh((1,), 'cpu', stride=(1,))"
        with pytest.raises(KeyError, match="no dimension 'other'"):
            mesh["other"]
        with pytest.raises(RuntimeError, match="2 dimensions"):
            mesh.get_group()
        with pytest.raises(IndexError):
            mesh.get_group(2)
        with pytest.raises(RuntimeError, match="default world size 1, but found 2"):
            dist.init_device_mesh("cpu", (2,), mesh_dim_names=("a",))
    finally:
        dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="same length"):
        dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a",))
    with pytest.raises(RuntimeError, match="with index"):
        dist.init_device_mesh("cpu:0", (1,))
    with pytest.raises(RuntimeError, match="unique"):
        dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a"))
    if dist.is_initialized():
        dist.destroy_process_group()
    assert dist.Backend("NCCL") == "nccl" == dist.Backend.NCCL
    with pytest.raises(ValueError):
        dist.Backend(3)
    assert importlib.import_module("rustgrad.distributed.distributed_c10d").all_reduce is dist.all_reduce


@own
def test_names_of_distributed_programs(torch):
    remote = importlib.import_module("rustgrad.distributed.autograd")
    errors = importlib.import_module("rustgrad.distributed.elastic.multiprocessing.errors")
    assert (
        remote.is_available() is False and errors.record(run) is run and issubclass(errors.ChildFailedError, Exception)
    )
    for refuses in (remote.context, remote.DistAutogradContext, lambda: remote.backward(0, [])):
        with pytest.raises(NotImplementedError, match="processes do not call each other"):
            refuses()


def test_types_for_annotations(torch):
    types = importlib.import_module(f"{torch.__name__}.nn.common_types")
    assert types._size_2_t == int | tuple[int, int] and types._ratio_any_t == float | tuple[float, ...]


def test_ops_that_may_launch_triton(torch):
    """A library defines them where there is no Triton too, and calls another kernel there."""

    @torch.library.triton_op("programs_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert twice(torch.ones(2)).tolist() == [2, 2] == torch.ops.programs_test.twice(torch.ones(2)).tolist()


def test_private_names_of_modules_and_loaders(torch):
    """Names with an underscore that libraries use all the same."""
    layers = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.ReLU()])
    assert layers._get_abs_string_index(-1) == "1"
    values = torch.nn.ParameterList([torch.ones(1), torch.zeros(1)])
    assert values._get_abs_string_index(-2) == "0"
    with pytest.raises(IndexError):
        layers._get_abs_string_index(2)
    model = torch.nn.BatchNorm1d(2)
    replica = model._replicate_for_data_parallel()
    assert type(replica) is torch.nn.BatchNorm1d and replica._is_replica and not replica._parameters
    replica._buffers.clear()
    assert len(model._buffers) == 3 and model.weight is not None
    loader = torch.utils.data.DataLoader([1, 2, 3, 4], num_workers=1, persistent_workers=True)
    assert loader._iterator is None
    assert len(list(loader)) == 4 and len(loader._iterator._workers) == 1
    (worker,) = loader._iterator._workers
    assert worker.is_alive()
    loader._iterator._shutdown_workers()
    assert not worker.is_alive()
    loader._iterator = None
    assert len(list(loader)) == 4
    (worker,) = loader._iterator._workers
    loader._iterator = None
    assert loader._iterator is None and not worker.is_alive()
    assert torch.version.git_version and torch.version.xpu is None


@own
def test_what_collect_env_tells_tools(torch):
    env = importlib.import_module("rustgrad.utils.collect_env")
    assert env.run([sys.executable, "-c", "print(7)"]) == (0, "7", "") and env.run(["no-such-command"])[0] == 127
    assert env.run_and_read_all(env.run, "exit 3") is None
    assert env.run_and_parse_first_match(env.run, "echo version 4.5", r"version (\S+)") == "4.5"
    assert env.get_platform() == sys.platform and isinstance(env.get_cpu_info(env.run), (str, type(None)))
    for answer in (env.get_gcc_version(env.run), env.get_nvidia_driver_version(env.run), env.get_gpu_info(env.run)):
        assert answer is None or isinstance(answer, str)


def test_a_compiled_module_takes_another_original(torch):
    """Libraries unwrap the original of a compiled module and put what is left back."""
    inner = torch.nn.Linear(2, 1)
    compiled = torch.compile(torch.nn.Sequential(inner))
    compiled._orig_mod = inner
    assert (
        compiled._orig_mod is inner and set(dict(compiled.named_parameters())) >= {"weight", "bias"} or target.STAND_IN
    )
    assert torch.equal(compiled(torch.ones(1, 2)), inner(torch.ones(1, 2))) and "_orig_mod" not in inner._modules


def test_a_plateau_is_handled_by_what_replaces_its_method(torch):
    """With the epoch, as in PyTorch."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    schedule, seen = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0), []
    schedule._reduce_lr = seen.append
    for metric in (1.0, 2.0, 3.0):
        schedule.step(metric)
    assert seen == [2, 3] and optimizer.param_groups[0]["lr"] == 1.0


def test_names_for_absent_kinds_of_tensors_and_pipes(torch):
    """Libraries import them and ask for their classes; what is made of them is refused with a hint."""
    pipes = importlib.import_module(f"{torch.__name__}.utils.data.datapipes.iter.combinatorics")
    assert not isinstance([], pipes.ShufflerIterDataPipe)
    assert issubclass(pipes.ShufflerIterDataPipe, torch.utils.data.IterableDataset)
    config = torch._inductor.config
    before, config.triton.unique_kernel_names = config.triton.unique_kernel_names, True
    assert config.triton.unique_kernel_names is True
    config.triton.unique_kernel_names = before
    assert torch._functorch.config is not None
    flex = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    assert flex._mask_mod_signature and flex._score_mod_signature


@own
def test_sharded_modules_are_refused_with_a_hint(torch):
    fsdp = importlib.import_module("rustgrad.distributed.fsdp")
    assert not isinstance(torch.nn.Linear(1, 1), fsdp.FullyShardedDataParallel) and fsdp.ShardingStrategy.NO_SHARD
    with pytest.raises(NotImplementedError, match="use the module itself"):
        fsdp.FullyShardedDataParallel(torch.nn.Linear(1, 1))


def test_states_by_the_names_of_parameters(torch):
    """`distributed.checkpoint.state_dict` for one process: an optimizer's state survives another order of its groups."""
    states = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")

    def make(*order):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        groups = [{"params": model[i].parameters(), "lr": 0.1 * (i + 1)} for i in order]
        return model, torch.optim.Adam(groups)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).square().sum().backward()
        optimizer.step()

    model, optimizer = make(0, 1)
    step(model, optimizer)
    own, optim = states.get_state_dict(model, optimizer)
    assert list(own) == ["0.weight", "0.bias", "1.weight", "1.bias"] == list(optim["state"])
    assert [g["params"] for g in optim["param_groups"]] == [["0.weight", "0.bias"], ["1.weight", "1.bias"]]
    own = {k: v.clone() for k, v in own.items()}
    optim["state"] = {k: {n: t.clone() for n, t in v.items()} for k, v in optim["state"].items()}
    other, reordered = make(1, 0)
    keys = states.set_state_dict(other, reordered, model_state_dict=own, optim_state_dict=optim)
    assert not keys.missing_keys and [g["lr"] for g in reordered.param_groups] == [0.2, 0.1]
    step(model, optimizer)
    step(other, reordered)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert list(states.get_model_state_dict(model, submodules={model[1]})) == ["1.weight", "1.bias"]
    model[0].weight.requires_grad_(False)
    options = states.StateDictOptions(ignore_frozen_params=True)
    assert "0.weight" not in states.get_model_state_dict(model, options=options)
    with torch.device("meta"):
        empty = torch.nn.Linear(2, 1)
    loaded = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    if not target.STAND_IN:  # where PyTorch asks for a process group
        states.set_model_state_dict(empty, loaded, options=states.StateDictOptions(full_state_dict=True))
        assert empty(torch.ones(1, 2)).tolist() == [[2.0]]
    part = {"1.bias": torch.zeros(1)}
    with pytest.raises(RuntimeError, match="Missing key"):
        states.set_model_state_dict(model, part)
    assert states.set_model_state_dict(model, part, options=states.StateDictOptions(strict=False)).missing_keys


def test_optimizers_of_libraries_keep_their_numbers(torch):
    """A state that counts steps in an int is loaded as it is; the package's own optimizers make tensors of old checkpoints."""

    class Counting(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["step"] = state.get("step", 0) + 1
                    p.data.sub_(p.grad, alpha=group["lr"] * (1 - 0.999 ** state["step"]))

    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    first, second = Counting([p]), Counting([p])
    first.step()
    second.load_state_dict(first.state_dict())
    assert type(second.state[p]["step"]) is int and second.state[p]["step"] == 1
    assert type(copy.deepcopy(second).state_dict()["state"][0]["step"]) is int
    for kind, names in (
        (torch.optim.Adam, ["step"]),
        (torch.optim.ASGD, ["step", "eta", "mu"]),
        (torch.optim.NAdam, ["mu_product"]),
    ):
        optimizer = kind([p])
        optimizer.step()
        old = optimizer.state_dict()
        old["state"][0].update({name: old["state"][0][name].item() for name in names})
        optimizer.load_state_dict(old)
        assert all(isinstance(optimizer.state[p][name], torch.Tensor) for name in names)
        optimizer.step()
    sgd = torch.optim.SGD([p], lr=0.1)
    sgd.load_state_dict({"state": {0: {"step": 3}}, "param_groups": sgd.state_dict()["param_groups"]})
    assert type(sgd.state[p]["step"]) is int


def test_members_that_are_made_on_the_way(torch):
    """Libraries list values that a call computes; the memory of one that is gone may be the next one's."""
    model = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(20)))

    def values(module):
        yield from ((name, p.exp()) for name, p in module._parameters.items())

    names = [name for name, _ in model._named_members(values)]
    assert names == [name for name, _ in model.named_parameters()]
    tied = torch.nn.Sequential(model[0], model[0])
    assert [name for name, _ in tied.named_parameters()] == ["0.weight", "0.bias"]
    both = [name for name, _ in tied.named_parameters(remove_duplicate=False)]
    assert both == ["0.weight", "0.bias", "1.weight", "1.bias"]
