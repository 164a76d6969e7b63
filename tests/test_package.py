"""The package around the core: names, typed constructors, settings, pictures of graphs, running unmodified scripts."""

import importlib
import io
import os
import pickle
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

import pytest
from seed_on_cpu import CUDA
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


def python(*arguments, **kwargs):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **kwargs)


@own
def test_import_is_light():
    code = "import sys, rustgrad; print([m for m in ('numpy', 'inspect', 'rustgrad.nn', 'rustgrad.viz') if m in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


@own
@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="every Python before 3.13 has the interpreter lock")
def test_importing_keeps_the_interpreter_lock():
    assert python("-c", "import sys, rustgrad; print(sys._is_gil_enabled())").stdout.strip() == "True"


def test_names(torch):
    assert torch.float is torch.float32 and torch.long is torch.int64 and torch.half is torch.float16
    assert torch.inf == float("inf") and torch.pi > 3.14 and torch.newaxis is None
    assert torch.is_tensor(torch.ones(1)) and not torch.is_tensor(1)
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor" and torch.numel(torch.ones(2, 3)) == 6
    assert torch.is_floating_point(torch.ones(1)) and not torch.is_complex(torch.ones(1))
    assert torch.broadcast_shapes((2, 1), (3,), 1) == torch.Size([2, 3])
    with pytest.raises(RuntimeError, match="Attempting to broadcast a dimension of length 3 at -1"):
        torch.broadcast_shapes((2,), (3,))
    assert repr(torch.ones(1).layout) == "torch.strided" and torch.ones(1).layout is torch.strided
    assert pickle.loads(pickle.dumps(torch.preserve_format)) is torch.preserve_format
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        torch.nonsense  # noqa: B018
    assert {"nn", "optim", "no_grad", "tensor"} <= set(dir(torch))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_finfo(torch, name):
    import numpy

    info = torch.finfo(getattr(torch, name))
    assert info.dtype == name and info.bits == {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}[name]
    if name != "bfloat16":
        expected = numpy.finfo(name)
        assert (info.eps, info.max, info.min, info.tiny) == tuple(
            float(v) for v in (expected.eps, expected.max, expected.min, expected.tiny)
        )


def test_limits_printed(torch):
    assert repr(torch.finfo(torch.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert torch.iinfo(torch.uint8).max == 255 and torch.iinfo(torch.int64).min == -(2**63)
    with pytest.raises(TypeError, match="requires a floating point input type"):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError, match="torch.bool is not supported by torch.iinfo"):
        torch.iinfo(torch.bool)


def test_typed_constructors(torch):
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.LongTensor([1, 2]).dtype == torch.int64
    assert torch.DoubleTensor((2, 3)).tolist() == [2, 3] and torch.ByteTensor().shape == (0,)
    assert torch.FloatTensor(torch.Size([2])).shape == (2,)
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
    assert repr(torch.IntTensor) == "<class 'torch.IntTensor'>"


def test_typed_constructors_of_cuda(torch):
    assert repr(torch.cuda.FloatTensor) == "<class 'torch.cuda.FloatTensor'>"
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    if not torch.cuda.is_available():
        with pytest.raises(TypeError, match="type torch.cuda.LongTensor not available"):
            torch.cuda.LongTensor(2)


@own
def test_typed_constructors_of_cuda_are_the_gpus_in_scripts():
    code = """
import torch
if torch.cuda.is_available():
    x = torch.cuda.LongTensor([1, 2])
    y = torch.ones(2).type(torch.cuda.FloatTensor)
    assert isinstance(x, torch.cuda.LongTensor) and not isinstance(x, torch.LongTensor)
    assert x.is_cuda and x.type() == "torch.cuda.LongTensor" and y.type() == "torch.cuda.FloatTensor"
print("done")
"""
    done = python("-m", "rustgrad", "-c", code)
    assert done.stdout == "done\n", done.stderr


def test_classes_that_take_type_arguments(torch):
    for kind in (
        torch.futures.Future,
        torch.utils.data.StackDataset,
        torch.nn.DataParallel,
        torch.distributions.Independent,
    ):
        assert kind[torch.Tensor].__origin__ is kind


@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type")
def test_default_tensor_type(torch):
    torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.ones(1).dtype == torch.float64
    torch.set_default_tensor_type(torch.FloatTensor)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        torch.set_default_tensor_type(torch.IntTensor)


def test_print_options(torch):
    torch.set_printoptions(precision=2)
    assert repr(torch.tensor([1 / 3])) == "tensor([0.33])"
    torch.set_printoptions(profile="long", precision=2)  # no profile: nothing but the precision is set
    assert repr(torch.tensor([1 / 3])) == "tensor([0.33])"
    torch.set_printoptions(profile="default", sci_mode=True)
    assert repr(torch.tensor([0.5])) == "tensor([5.0000e-01])"
    torch.set_printoptions(profile="default")
    assert repr(torch.tensor([1 / 3])) == "tensor([0.3333])"


def test_fork_rng(torch):
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(5)
    a = torch.rand(2).tolist()
    torch.manual_seed(3)
    assert torch.rand(2).tolist() == a


@own
def test_graph_as_a_picture(torch, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x, y = torch.ones(5, 3), torch.tensor([0, 1, 0, 1, 0])
    loss = torch.nn.functional.cross_entropy(model(x), y)
    path = tmp_path / "graph.svg"
    svg = torch.viz.draw(loss, {"images": x, "loss": loss, **dict(model.named_parameters())}, path, title="a < b")
    assert path.read_text() == svg == svg._repr_svg_() and type(svg._repr_svg_()) is str
    root = ElementTree.fromstring(svg)
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"0.weight", "0.bias", "2.weight", "2.bias", "loss", "4×3", "scalar", "a < b"} <= set(texts)
    assert texts.count("AccumulateGrad") == 4 and "ReluBackward0" in texts
    assert {"images", "5×3", "target", "5 int64"} <= set(texts), "inputs are shown, named where a name was given"
    assert "Data flows down the arrows; backward() takes gradients up them." in texts
    boxes = [
        (float(r.get("x")), float(r.get("y")), float(r.get("width")), float(r.get("height")))
        for g in root.iter("{http://www.w3.org/2000/svg}g")
        if g.get("class")
        for r in g.findall("{http://www.w3.org/2000/svg}rect")
    ]
    assert len(boxes) >= 12
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[i + 1 :]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, "boxes overlap"
    with pytest.raises(ValueError, match="has no graph"):
        torch.viz.draw(torch.ones(1))
    for name in ("g.png", "g"):
        with pytest.raises(ValueError, match="expected a path that ends in .svg"):
            torch.viz.draw(loss, path=tmp_path / name)
        assert not (tmp_path / name).exists()
    loss.backward()
    assert "ReluBackward0" in torch.viz.draw(loss), "what backward has freed is not shown"


@own
def test_layout_is_layered():
    from rustgrad.viz._layout import layout

    edges = [(a, b) for a in range(30) for b in range(a + 1, 30) if (a * 7 + b * 3) % 11 == 0]
    picture = layout({n: (40.0, 20.0) for n in range(30)}, edges)
    for a, b in edges:
        assert picture.boxes[a].y < picture.boxes[b].y
    assert all(0 <= b.x - b.width / 2 and b.x + b.width / 2 <= picture.width for b in picture.boxes.values())


@own
def test_cuda_is_not_pretended(torch):
    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    with pytest.raises(RuntimeError, match="there is no CUDA in rustgrad"):
        torch.cuda.get_device_name()
    with pytest.raises(RuntimeError, match="device 'cuda' is not known here"):
        torch.ones(1).cuda()
    assert (
        not torch.ones(1).is_cuda and not torch.backends.cudnn.is_available() and not torch.backends.mps.is_available()
    )


@own
def test_figures_of_memory_without_cuda(torch):
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_reserved() == torch.cuda.max_memory_reserved() == 0
    assert torch.cuda.memory_stats() == {}
    for call in (
        torch.cuda.reset_peak_memory_stats,
        torch.cuda.get_device_properties,
        torch.cuda.get_device_capability,
    ):
        with pytest.raises(RuntimeError, match="there is no CUDA in rustgrad"):
            call()
    assert not torch.xpu.is_available() and torch.xpu.device_count() == 0 and torch.xpu.empty_cache() is None
    with pytest.raises(RuntimeError, match="there is no XPU in rustgrad"):
        torch.xpu.synchronize()
    assert not torch.mtia.is_available() and torch.mtia.device_count() == 0 and torch.mtia.manual_seed(0) is None
    with pytest.raises(RuntimeError, match="without MTIA backend"):
        torch.mtia.current_device()


def test_names_of_older_programs(torch):
    import importlib

    operators = importlib.import_module(f"{torch.__name__}.onnx.operators")
    x = torch.arange(6.0).reshape(2, 3)
    assert operators.shape_as_tensor(x).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(x, torch.tensor([3, 2])).shape == (3, 2)
    weight = torch.ones(3, 3, 1)
    assert torch.conv_tbc(x[None], weight, torch.zeros(1), 1).equal(x.sum(1).reshape(1, 2, 1))
    with pytest.warns(FutureWarning, match="deprecated"):
        assert torch.distributed.reduce_op.SUM == torch.distributed.ReduceOp.SUM
    extensions = importlib.import_module(f"{torch.__name__}.utils.cpp_extension")
    assert extensions._get_build_directory("name", False).endswith("name") and extensions.HIP_HOME is None
    shards = importlib.import_module(f"{torch.__name__}.distributed._shard.sharded_tensor.api")
    assert not isinstance(x, shards.ShardedTensor)
    assert importlib.import_module(f"{torch.__name__}.distributed.fsdp._runtime_utils")._reshard
    split = importlib.import_module(f"{torch.__name__}.distributed.fsdp._common_utils")
    assert split.clean_tensor_name("a._fsdp_wrapped_module.b._checkpoint_wrapped_module.c") == "a.b.c"
    for name in ("distributed.fsdp._flat_param", "distributed._tensor.device_mesh", "profiler._memory_profiler"):
        importlib.import_module(f"{torch.__name__}.{name}")
    assert torch.backends.cudnn.conv.fp32_precision and torch.backends.cuda.matmul.fp32_precision == "none"


def test_modules_of_other_names(torch):
    import importlib

    types = importlib.import_module(f"{torch.__name__}.types")
    assert isinstance(3, types.Number) and isinstance("cpu", types.Device) and isinstance(torch.Size([1]), types._size)
    functional = importlib.import_module(f"{torch.__name__}.functional")
    assert all(getattr(functional, n) is getattr(torch, n) for n in ("einsum", "norm", "split", "unique"))
    assert functional.F is torch.nn.functional and functional.Tensor is torch.Tensor
    assert torch.nn.modules.conv.F is torch.nn.functional
    assert torch.utils.set_module(type("Here", (), {}), "there") is None
    foreach = importlib.import_module(f"{torch.__name__}.utils._foreach_utils")
    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.zeros(2)
    assert foreach._foreach_supported_types == [torch.Tensor]
    assert torch._disable_dynamo is importlib.import_module(f"{torch.__name__}._compile")._disable_dynamo
    groups = foreach._group_tensors_by_device_and_dtype([[a, b, c], [c, b, a]], with_indices=True)
    assert {k[1]: v[1] for k, v in groups.items()} == {torch.float32: [0, 2], torch.float64: [1]}
    assert groups[torch.device("cpu"), torch.float32][0][1][1] is a


@own
def test_settings_are_remembered(torch):
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 1
    torch.use_deterministic_algorithms(False, warn_only=True)
    assert torch.is_deterministic_algorithms_warn_only_enabled() and torch.get_deterministic_debug_mode() == 0
    torch.set_deterministic_debug_mode("default")
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("low")
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(TypeError, match="must be bool"):
        torch.use_deterministic_algorithms(1)
    assert torch.set_flush_denormal(False) is False and torch.get_num_interop_threads() == 1
    torch.set_num_interop_threads(3)
    assert torch.get_num_interop_threads() == 3
    for wrong in (0, -1, "2"):
        with pytest.raises(RuntimeError, match="set_num_interop_threads expects"):
            torch.set_num_interop_threads(wrong)
    torch.set_num_interop_threads(1)


@own
def test_accelerator(torch):
    assert torch.accelerator.is_available() == torch.gpu.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("gpu")
    with torch.accelerator.device_index(None):
        assert torch.accelerator.current_device_index() == 0
    with pytest.raises(RuntimeError, match="invalid device index 3"):
        torch.accelerator.set_device_index(3)
    torch.accelerator.empty_host_cache()
    torch.accelerator.reset_accumulated_memory_stats()
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    assert torch.accelerator.max_memory_reserved() >= torch.accelerator.memory_reserved()
    with pytest.raises(RuntimeError, match="record_stream: expected a tensor on a GPU"):
        torch.ones(1).record_stream(None)


def run_unmodified(tmp_path, program, *arguments):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(program))
    return python("-m", "rustgrad", str(script), *arguments, env={**os.environ})


@own
def test_cuda_programs_run_on_the_gpu(tmp_path):
    """Document 004 on the GPU, if there is one: the block runs unmodified."""
    if target.gpu_reason():
        pytest.skip(target.gpu_reason())
    more = "print(x.cuda() is x, x.is_cuda, torch.cuda.device_count() > 0, z.cpu().is_cuda)"
    done = run_unmodified(tmp_path, f"import torch\n{CUDA}{more}")
    assert done.returncode == 0, done.stderr
    assert re.sub(r"device='\w+:0'", "device=?", done.stdout).splitlines() == [
        "tensor([2., 2.], device=?)", "tensor([2., 2.], dtype=torch.float64)", "True True True False",
    ]  # fmt: skip


@own
def test_unmodified_scripts_run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import torch
            import torch.nn as nn
            import torch.nn.functional as F
            from torch import optim
            from torch.utils.data import DataLoader, TensorDataset

            device = "cuda" if torch.cuda.is_available() else "cpu"
            model = nn.Linear(2, 1).to(device)
            data = DataLoader(TensorDataset(torch.ones(4, 2), torch.zeros(4, 1)), batch_size=2)
            optimizer = optim.SGD(model.parameters(), lr=0.1)
            for x, y in data:
                optimizer.zero_grad()
                F.mse_loss(model(x.to(device)), y.to(device)).backward()
                optimizer.step()
            print(torch.nn.Linear is nn.Linear, sys.argv[1:], __name__, torch.__name__)
            """
        )
    )
    done = python("-m", "rustgrad", str(script), "--flag", env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True ['--flag'] __main__ torch"
    script.write_text("import torch.no_such_module")
    assert re.search("No module named 'torch.no_such_module'", python("-m", "rustgrad", str(script)).stderr)


@own
def test_the_command_line_is_that_of_python(tmp_path):
    """Options, exit codes and tracebacks: an error shows only the frames of the script."""

    def run(*arguments):
        done = python("-m", "rustgrad", *arguments)
        return done.returncode, done.stdout, done.stderr

    assert run()[0] == 2 and "usage:" in run()[2]
    code, out, err = run("--help")
    assert code == 0 and "usage:" in out and not err
    assert run("--version")[:2] == (0, f"rustgrad {target.torch.__version__} (Python {sys.version.split()[0]})\n")
    code, out, err = run(str(tmp_path / "absent.py"))
    assert code == 2 and "can't open file" in err and "Traceback" not in err
    assert run("-c", "import sys, torch; print(torch.__name__, __name__, sys.argv)", "a") == (
        0, "torch __main__ ['-c', 'a']\n", ""
    )  # fmt: skip
    probe = (
        "import importlib.metadata as m, torch; print(torch.__version__ == m.version('torch'), torch.__version__[0])"
    )
    assert run("-c", probe) == (0, "True 2\n", "")
    script = tmp_path / "fails.py"
    script.write_text("import torch\ndef f(x):\n    return x @ torch.ones(3, 3)\nf(torch.ones(2, 2))\n")
    code, out, err = run(str(script))
    assert code == 1 and err.count("File ") == 2 == err.count(str(script)) and "RuntimeError: " in err
    nearby = python("-m", "rustgrad", script.name, cwd=tmp_path).stderr
    assert nearby.count(f'File "{script}"') == 2
    script.write_text(
        "import torch\nwith torch.autograd.detect_anomaly(check_nan=True):\n"
        "    (torch.tensor(-1.0, requires_grad=True).sqrt() * 0).backward()\n"
    )
    code, out, err = run(str(script))
    assert code == 1 and "Traceback of forward call" in err and "__main__.py" not in err and "runpy" not in err
    script.write_text("def f(:\n")
    code, out, err = run(str(script))
    assert code == 1 and "SyntaxError" in err and "Traceback" not in err
    script.write_text("import sys; sys.exit(3)")
    assert run(str(script))[0] == 3
    code, out, err = run("-m", "no_such_module")
    assert code == 1 and "No module named" in err and "Traceback" not in err


@own
def test_absent_names_say_where_the_list_stands(torch):
    for module, name in (
        (torch, "fbgemm_pack_quantized_matrix"),
        (torch.nn.functional, "scaled_mm"),
        (torch.optim, "LBFGSX"),
    ):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; if PyTorch has it, it is not here yet"):
            getattr(module, name)
    assert python("-c", "import rustgrad; rustgrad.zeroes").stderr.rstrip().endswith("Did you mean: 'zeros'?")
    assert not hasattr(torch, "_private_name_of_nobody")


def test_the_future_of_the_package(torch):
    assert torch.Future is torch.futures.Future


def test_flat_buffers_of_tensors(torch):
    utils = importlib.import_module(f"{torch.__name__}._utils")
    parts = [torch.arange(6.0).reshape(2, 3).t(), torch.tensor(7.0), torch.empty(0, 2)]
    flat = utils._flatten_dense_tensors(parts)
    back = utils._unflatten_dense_tensors(flat, parts)
    assert flat.tolist() == [0, 3, 1, 4, 2, 5, 7] and all(torch.equal(a, b) for a, b in zip(back, parts))
    back[1].zero_()
    assert flat[6] == 0


def test_results_of_loading_have_a_class(torch):
    layer = torch.nn.Linear(1, 1)
    keys = importlib.import_module(f"{torch.__name__}.nn.modules.module")._IncompatibleKeys
    assert isinstance(layer.load_state_dict(layer.state_dict()), keys) and keys([], ["a"]).unexpected_keys == ["a"]


@own
def test_collectives_and_optimizers_of_one_process():
    code = """
import rustgrad as torch, rustgrad.distributed as dist
from rustgrad.distributed.nn import all_gather, all_reduce, reduce_scatter
from rustgrad.distributed.optim import ZeroRedundancyOptimizer
layer = torch.nn.Linear(2, 1)
try:
    all_reduce(layer.weight)
except ValueError as error:
    assert "Default process group has not been initialized" in str(error)
dist.init_process_group("gloo", rank=0, world_size=1, init_method="tcp://127.0.0.1:1")
x = torch.ones(2, requires_grad=True)
(gathered,) = all_gather(x * 2)
(all_reduce(gathered) + reduce_scatter(torch.empty(2), [x])).sum().backward()
assert x.grad.tolist() == [3, 3]
other = torch.nn.Linear(2, 1)
other.load_state_dict(layer.state_dict())
zero = ZeroRedundancyOptimizer(layer.parameters(), torch.optim.Adam, lr=0.1)
plain = torch.optim.Adam(other.parameters(), lr=0.1)
for _ in range(3):
    for model, optimizer in ((layer, zero), (other, plain)):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).pow(2).sum().backward()
        optimizer.step()
assert all(torch.equal(a, b) for a, b in zip(layer.parameters(), other.parameters()))
zero.consolidate_state_dict()
again = ZeroRedundancyOptimizer(layer.parameters(), torch.optim.Adam, lr=0.5)
again.load_state_dict(zero.state_dict())
assert again.param_groups[0]["lr"] == 0.1 and len(again.state) == 2 and again.rank == 0
again.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
assert len(again.optim.param_groups) == 2
torch.optim.lr_scheduler.StepLR(again, 1)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_names_that_libraries_look_for(torch):
    assert torch.torch is torch and torch.ScriptModule is torch.jit.ScriptModule
    assert isinstance(torch.Tensor, torch._C._TensorMeta)
    parse = torch._C._nn._parse_to
    assert parse("cpu") == (torch.device("cpu"), None, False, None)
    assert parse(torch.ones(1, dtype=torch.float64)) == (torch.device("cpu"), torch.float64, False, None)
    assert parse(memory_format=torch.channels_last, non_blocking=True) == (None, None, True, torch.channels_last)
    assert torch._C._nn.gelu(torch.zeros(1)).item() == 0
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(1)))
    assert loader._dataset_kind == importlib.import_module(f"{torch.__name__}.utils.data.dataloader")._DatasetKind.Map
    with torch.autograd.profiler.emit_nvtx(enabled=False):
        pass


@own
def test_what_is_not_here_says_so_where_it_is_used(torch):
    from rustgrad.distributed._composable.fsdp import FSDPModule
    from rustgrad.distributed._tensor.experimental import implicit_replication
    from rustgrad.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from rustgrad.distributed.tensor import DTensor

    layer = torch.nn.Linear(1, 1)
    assert not isinstance(layer, FSDPModule) and not isinstance(layer.weight, DTensor)
    with implicit_replication():
        assert MixedPrecisionPolicy(torch.float16).param_dtype == torch.float16
    for use in (
        lambda: fully_shard(layer),
        lambda: DTensor(layer.weight),
        lambda: FSDPModule(),
    ):
        with pytest.raises(NotImplementedError):
            use()
    with pytest.raises(RuntimeError, match="there is no NVTX"):
        torch.autograd.profiler.emit_nvtx().__enter__()


@own
def test_plans_of_layers_that_are_split_are_written(torch):
    from rustgrad._C._profiler import _ExperimentalConfig
    from rustgrad.distributed._composable.fsdp import CPUOffloadPolicy, register_fsdp_forward_method
    from rustgrad.distributed._tensor.placement_types import DTensorSpec, Replicate, Shard, TensorMeta
    from rustgrad.distributed.device_mesh import init_device_mesh
    from rustgrad.distributed.tensor import parallel
    from rustgrad.sparse._triton_ops import bsr_dense_addmm

    layer = torch.nn.Linear(1, 1)
    plan = {"a": parallel.ColwiseParallel(output_layouts=Replicate()), "b": parallel.RowwiseParallel()}
    assert plan["a"].output_layouts == (Replicate(),) and plan["b"].input_layouts == (Shard(-1),)
    both = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
    assert parallel.PrepareModuleInput(**both).desired_input_layouts == (Replicate(),)
    with pytest.raises(AssertionError, match="should have same length"):
        parallel.PrepareModuleInput(input_layouts=Shard(1))
    mesh = init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()  # the mesh made one of this process
    assert parallel.parallelize_module(layer, mesh, plan) is layer
    assert register_fsdp_forward_method(layer, "forward") is None and CPUOffloadPolicy().pin_memory
    assert TensorMeta(torch.Size([1]), (1,), torch.float32).stride == (1,)
    assert _ExperimentalConfig(verbose=True).verbose
    for use in (
        lambda: parallel.parallelize_module(layer, None, plan),
        lambda: parallel.loss_parallel(),
        lambda: DTensorSpec(),
        lambda: bsr_dense_addmm(),
    ):
        with pytest.raises(NotImplementedError):
            use()


def test_records_of_a_file(torch, tmp_path):
    reader = torch.PyTorchFileReader
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    records = reader(str(tmp_path / "a.pt"))
    assert {"data.pkl", "data/0"} <= set(records.get_all_records()) and not records.has_record("a")
    assert records.get_record("data/0") == b"\0\0\x80?" * 2
    with pytest.raises(RuntimeError, match="failed locating file b: file not found"):
        records.get_record("b")
    (tmp_path / "b.pt").write_bytes(b"no zip")
    with pytest.raises(RuntimeError, match="PytorchStreamReader failed reading zip archive"):
        reader(str(tmp_path / "b.pt"))


def test_records_are_written_one_by_one(torch, tmp_path):
    kept, a = torch.PyTorchFileReader, torch.arange(3.0)
    with open(tmp_path / "c.pt", "wb") as file:
        writer = torch._C.PyTorchFileWriter(file, compute_crc32=False)
        assert writer.archive_name() == "archive"
        writer.write_record("text", "hello", 4)
        writer.write_record("storage", a.untyped_storage(), 12)
        writer.write_record("memory", a.data_ptr(), 8)
        with pytest.raises(RuntimeError, match="Tried to serialize file twice: text"):
            writer.write_record("text", b"", 0)
        with pytest.raises(ValueError, match="too few bytes; expected 3, got 2"):
            writer.write_record("short", b"ab", 3)
        assert writer.get_all_written_records() == {"text", "storage", "memory"}
        writer.write_end_of_file()
        with pytest.raises(RuntimeError, match="the file has ended"):
            writer.write_record("more", b"", 0)
    records = kept(str(tmp_path / "c.pt"))
    assert records.get_all_records() == ["text", "storage", "memory", "version", "byteorder"]
    assert records.get_record("text") == b"hell" and records.get_record("version") == b"3\n"
    assert records.get_record("storage")[:8] == records.get_record("memory") == b"\0\0\0\0\0\0\x80?"


def test_what_writers_of_checkpoints_ask_of_storages(torch):
    # A tensor in a pickle of Python's own, in a file of records, is one that `load` reads.
    a, storages, data, buffer = torch.ones(3), [], io.BytesIO(), io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            if not isinstance(obj, torch.storage.TypedStorage):
                return None
            storages.append(obj)
            kind = getattr(torch, obj._pickle_storage_type())
            return ("storage", kind, str(len(storages) - 1), torch.serialization.location_tag(obj), obj._size())

    assert a.__reduce_ex__(2)[0] is torch._utils._rebuild_tensor_v2
    a.note = "kept"
    Pickler(data, 2).dump({"a": torch.nn.Parameter(a), "b": a})
    writer = torch.PyTorchFileWriter(buffer)
    writer.write_record("data.pkl", data.getvalue(), len(data.getvalue()))
    for place, storage in enumerate(storages):
        writer.write_record(f"data/{place}", storage, 12)
    writer.write_end_of_file()
    loaded = torch.load(io.BytesIO(buffer.getvalue()))
    assert all(torch.equal(t, a) for t in loaded.values()) and isinstance(loaded["a"], torch.nn.Parameter)
    assert loaded["b"].note == "kept"
    storage = torch.arange(3.0)._typed_storage()
    assert (storage._size(), storage._nbytes(), storage._element_size()) == (3, 12, 4)
    assert storage._pickle_storage_type() == "FloatStorage" and storage._data_ptr() == storage.data_ptr()
    normalize = torch.serialization.normalize_storage_type
    assert normalize(torch.UntypedStorage) is torch.UntypedStorage and normalize(torch.IntStorage) is torch.IntStorage


def test_the_class_of_compiled_modules_has_its_place(torch):
    compiled = torch.compile(torch.nn.Linear(1, 1), backend="eager")
    assert isinstance(compiled, torch._dynamo.eval_frame.OptimizedModule)


def test_names_that_libraries_import(torch):
    debugging = importlib.import_module(f"{torch.__name__}._dynamo.backends.debugging")
    layer = torch.nn.Linear(2, 2)
    explained = torch._dynamo.explain(layer)(torch.ones(1, 2))
    assert isinstance(explained, debugging.ExplainOutput) and explained.graph_count == 1
    cuda, q = torch.backends.cuda, torch.ones(1, 1, 2, 2)
    assert cuda.SDPBackend is torch.nn.attention.SDPBackend
    params = cuda.SDPAParams(q, q, q, None, 0.0, True, False)
    assert params.is_causal and not params.enable_gqa and params.query is q
    assert not (cuda.can_use_flash_attention(params, True) or cuda.can_use_efficient_attention(params))


def test_the_index_of_a_device(torch):
    index = importlib.import_module(f"{torch.__name__}._utils")._get_device_index
    assert index(3) == 3 and index(torch.device("cuda:1")) == 1 and index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        index("cpu")
    with pytest.raises(ValueError, match="with a specified index or an integer"):
        index(None)
