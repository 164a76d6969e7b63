"""The GPU device from Python: properties, errors, the output of `RUSTGRAD_DEBUG`, downloads."""

import copy
import io
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest
from conftest import need
from support import target

torch = target.torch
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


@pytest.fixture(autouse=True)
def gpu():
    need("gpu")


def python(code: str, **environment) -> subprocess.CompletedProcess:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)


def test_what_it_says_of_itself():
    gpu = torch.gpu
    assert gpu.is_available() and gpu.device_count() == 1 and gpu.current_device() == 0
    properties = gpu.get_device_properties("gpu:0")
    assert properties.name in gpu.get_device_name(0) and properties.max_buffer_size >= properties.max_binding_size > 0
    assert isinstance(properties.has_float64, bool)
    assert not torch.cuda.is_available()
    for call in (gpu.get_device_name, gpu.synchronize, gpu.memory_allocated, gpu.set_device, gpu.stats):
        with pytest.raises(RuntimeError, match="invalid device index 3"):
            call(3)
    with pytest.raises(ValueError, match="Expected a gpu device"):
        gpu.synchronize("cpu")


def test_memory_is_counted():
    gpu = torch.gpu
    gpu.reset_peak_memory_stats()
    before = gpu.memory_allocated()
    x = torch.zeros(1 << 20, device="gpu")
    assert gpu.memory_allocated() >= before + x.nbytes and gpu.max_memory_allocated() >= before + x.nbytes
    del x
    assert gpu.memory_allocated() == before and gpu.max_memory_allocated() > before
    assert gpu.memory_reserved() > before
    gpu.reset_peak_memory_stats()
    assert gpu.max_memory_allocated() == before == gpu.memory_stats()["allocated_bytes.all.current"]
    assert gpu.max_memory_reserved() == gpu.memory_reserved() == gpu.memory_stats()["reserved_bytes.all.peak"]
    gpu.empty_cache()
    assert gpu.memory_reserved() < before + 4 * (1 << 20)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float32, torch.float64])
def test_a_triangle_is_one_dispatch(dtype):
    x = torch.ones(3, 40, 50, dtype=dtype)
    y = x.to("gpu")
    torch.tril(y)
    for call in (torch.tril, torch.triu):
        assert dispatches(lambda call=call: call(y, 2)) == 1
        assert torch.equal(call(y.mT, -1).cpu(), call(x.mT, -1))
    assert dispatches(lambda: y.tril_(3)) == 1
    assert torch.equal(y.cpu(), x.tril(3))


def test_another_index_is_refused():
    for make in (
        lambda: torch.ones(2, device="gpu:1"),
        lambda: torch.ones(2).to("gpu:7"),
        lambda: torch.ones(2, device=1),
    ):
        with pytest.raises(RuntimeError, match="invalid device index"):
            make()
    assert torch.ones(2, device=0).device == torch.device("gpu:0")


SEVERAL = """import rustgrad as torch
gpu = torch.gpu
assert gpu.device_count() == 2 and gpu.current_device() == 0
x = torch.arange(6.0).reshape(2, 3)
y = x.to("gpu:1")
assert gpu.stats(0) == {} and gpu.memory_allocated(0) == 0, "a device is opened on first use"
assert gpu.memory_allocated(1) > 0 and gpu.memory_allocated() == 0
z = (y @ y.mT).softmax(1)
assert z.device == torch.device("gpu:1") and torch.allclose(z.cpu(), (x @ x.mT).softmax(1))
there = z.to("gpu:0")
assert there.device == torch.device("gpu") and torch.equal(there.cpu(), z.cpu())
w = torch.ones(2, 2, device="gpu:1", requires_grad=True)
(there * w.to("gpu")).sum().backward()
assert w.grad.device == w.device and torch.equal(w.grad.cpu(), z.cpu())
assert torch.equal(torch.zeros(2, device="gpu:0").copy_(w.detach()[0]).cpu(), torch.ones(2))
y[torch.tensor([9], device="gpu:1")] = 0  # a bad index is the error of its own device
there.tolist()
for call, text in (
    (lambda: gpu.synchronize(), "index 9 is out of bounds"),
    (lambda: there + z, "same device"),
    (lambda: torch.ones(2, device="gpu:2"), "invalid device index 2; this process drives 2 GPUs"),
    (lambda: gpu.get_device_name(2), "invalid device index 2; this process drives 2 GPUs"),
    (lambda: gpu.set_device("gpu:1"), "always means gpu:0"),
):
    try:
        call()
        print("no error:", text)
    except (RuntimeError, IndexError) as error:
        assert text in str(error), error
gpu.synchronize()
"""


def test_several_adapters(tmp_path):
    """A copy of Mesa's software driver under another name is a second adapter."""
    used = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES") or ""
    software = next((f for f in used.split(os.pathsep) if "lvp" in os.path.basename(f)), None)
    if software is None:
        pytest.skip("the driver here is not Mesa's software one, of which there can be two")
    described = json.loads(pathlib.Path(software).read_text())
    library = shutil.copy(described["ICD"]["library_path"], tmp_path / "libvulkan_lvp_copy.so")
    described["ICD"]["library_path"] = str(library)
    copy_of_it = tmp_path / "lvp_copy.json"
    copy_of_it.write_text(json.dumps(described))
    drivers = os.pathsep.join([software, str(copy_of_it)])
    done = python(SEVERAL, VK_DRIVER_FILES=drivers, VK_ICD_FILENAMES=drivers, RUSTGRAD_GPU="0,1")
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def test_a_software_adapter_counts_only_where_it_is_asked_for():
    if torch.gpu.get_device_properties().type != "Cpu":
        pytest.skip("the adapter here is no software one")
    code = """import warnings
import rustgrad as torch
print(torch.gpu.is_available(), torch.gpu.device_count(), torch.accelerator.is_available())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(torch.ones(2, device="gpu").sum().item(), torch.ones(2).to("gpu").device)
print(len(caught), "software adapter" in str(caught[0].message))
"""
    quiet = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "RUSTGRAD_GPU")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=quiet)
    assert done.stdout.split("\n")[:3] == ["False 0 False", "2.0 gpu:0", "1 True"], done.stderr
    assert not done.stderr, "looking for adapters prints nothing"
    picked = python("import rustgrad; print(rustgrad.gpu.is_available())", RUSTGRAD_GPU="0")
    assert picked.stdout == "True\n"


def test_where_there_is_no_adapter():
    code = """import rustgrad as torch
print(torch.gpu.is_available(), torch.gpu.device_count(), torch.gpu.memory_allocated(), torch.gpu.stats())
for call in (lambda: torch.ones(2, device="gpu"), torch.gpu.get_device_name, torch.gpu.get_device_properties):
    try:
        call()
    except RuntimeError as error:
        print("no GPU is available" in str(error) and "device='cpu'" in str(error))
torch.gpu.synchronize(); torch.gpu.empty_cache()
"""
    nothing = {"VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}
    done = python(code, **nothing)
    assert done.stdout.split("\n")[:4] == ["False 0 0 {}", "True", "True", "True"], done.stderr


def test_drivers_are_loaded_only_for_who_uses_a_gpu():
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("what a process has loaded is read from /proc")
    code = """import rustgrad as torch
def loaded(): return any(name in open("/proc/self/maps").read() for name in ("libvulkan", "libnvidia", "libvulkan_lvp"))
torch.ones(2).sum(); torch.gpu.synchronize(); torch.gpu.memory_allocated(); torch.gpu.stats(); torch.gpu.empty_cache()
print(loaded()); torch.gpu.is_available(); print(loaded())
"""
    done = python(code)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_tensors_leave_it():
    x = torch.arange(6, device="gpu").reshape(2, 3).float().requires_grad_()
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert y.device == x.device and y.requires_grad and y.tolist() == x.tolist()
    assert repr(x[:, 1].detach()) == "tensor([1., 4.], device='gpu:0')"
    file = io.BytesIO()
    torch.save({"x": x.detach(), "row": x.detach()[1]}, file)
    for where, device in ((None, "gpu"), ("cpu", "cpu"), ({"gpu:0": "cpu"}, "cpu"), (torch.device("gpu"), "gpu")):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert loaded["x"].device.type == loaded["row"].device.type == device
        assert loaded["row"].tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(TypeError, match="can't convert gpu:0 device type tensor to numpy. Use Tensor.cpu\\(\\)"):
        x.detach().numpy()
    with pytest.raises(BufferError, match="only cpu tensors can be exported"):
        x.detach().__dlpack__()


def test_mixed_devices_are_named():
    x, w = torch.ones(2, 2, device="gpu"), torch.ones(2, 2)
    text = "Expected all tensors to be on the same device, but found at least two devices, gpu:0 and cpu!"
    for call in (lambda: x + w, lambda: x @ w, lambda: torch.cat([x, w]), lambda: torch.where(x > 0, x, w)):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert (x + torch.tensor(1.0)).device.type == "gpu"


def test_a_bad_index_comes_back_when_the_host_waits():
    x = torch.arange(4, device="gpu")
    y = x[torch.tensor([9], device="gpu")]
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 4"):
        y.tolist()
    assert x.tolist() == [0, 1, 2, 3]
    code = "import rustgrad as torch; torch.arange(4, device='gpu')[torch.tensor([9], device='gpu')]"
    assert "IndexError" in python(code, RUSTGRAD_GPU_BLOCKING="1").stderr
    assert python(code).returncode == 0


def test_debug_levels():
    code = """import rustgrad as torch
x = torch.ones(2, 3, device="gpu", requires_grad=True)
y = torch.add(x, 1, alpha=2).sum()
"""
    ops = ["op: add(f32[2,3] gpu:0, 1, alpha=2) -> f32[2,3] gpu:0", "op: sum(f32[2,3] gpu:0) -> f32[] gpu:0"]
    heard = {level: python(code, RUSTGRAD_DEBUG=str(level)).stderr for level in range(5)}
    assert heard[0] == ""
    assert [line for line in ops if line not in heard[1]] == [] and "gpu:" not in heard[1].replace("gpu:0", "")
    assert "gpu: reduce" in heard[2] and "fn main" not in heard[2]
    assert "fn main" in heard[3] and " us " not in heard[3]
    assert " us " in heard[4]


def dispatches(call) -> int:
    """The number of kernels that the call runs; it may not wait for the device."""
    before = torch.gpu.stats()
    call()
    after = torch.gpu.stats()
    assert after["waits"] == before["waits"]
    return after["dispatches"] - before["dispatches"]


def test_steps_of_optimisers_are_one_kernel():
    for make in (lambda p: torch.optim.Adam([p]), lambda p: torch.optim.SGD([p], lr=0.1, momentum=0.9)):
        p = torch.ones(100, device="gpu", requires_grad=True)
        p.grad = torch.ones(100, device="gpu")
        optimizer = make(p)
        optimizer.step()
        assert dispatches(optimizer.step) == 1


def test_layer_norm_is_one_kernel_and_its_gradient_two():
    x, w, b = (torch.ones(s, device="gpu", requires_grad=True) for s in ((2, 5, 40), 40, 40))
    g = torch.ones(2, 5, 40, device="gpu")
    assert dispatches(lambda: torch.nn.functional.layer_norm(x, (40,), w, b)) == 1
    y = torch.nn.functional.layer_norm(x, (40,), w, b)
    assert dispatches(lambda: torch.autograd.grad(y, (x, w, b), g)) == 2


def test_long_loops_do_not_end_early():
    """lavapipe silently ends the loops of an invocation after 65,535 iterations in total."""
    n = 70_001
    at = torch.arange(n, device="gpu") % 3
    for dtype in (torch.int64, torch.float32):
        ones = torch.ones(n, dtype=dtype, device="gpu")
        zeros = torch.zeros(3, dtype=dtype, device="gpu")
        want = [23334, 23334, 23333]
        assert zeros.index_add(0, at, ones).tolist() == want
        assert zeros.scatter_add(0, at, ones).tolist() == want
        assert zeros.index_put((at,), ones, accumulate=True).tolist() == want
    for reverse, last in ((False, n - 1), (True, 0)):
        ones = torch.ones(n, device="gpu")
        assert torch._C.ops["_linear_recurrence"](ones, ones, 0, reverse)[last].item() == n
    late = (torch.arange(n, device="gpu") == n - 1).to(torch.uint8)
    assert late.unsqueeze(1).expand(n, 1500).argmax(0).unique().tolist() == [n - 1]
    assert (torch.ones(2, 3, n, device="gpu") @ torch.ones(2, n, 3, device="gpu")).unique().tolist() == [n]
    if torch.gpu.get_device_properties(0).type == "Cpu":
        with pytest.raises(RuntimeError, match="rows are too long for a software adapter"):
            torch.zeros(6_000_000, device="gpu").softmax(0)


def test_rows_of_any_width_are_put_in_order():
    x = torch.zeros(90, 1100, dtype=torch.int64)
    x[:, 1099] = torch.arange(90) * 7 % 11
    x[:, 511] = torch.arange(90) % 2
    for got, want in zip(*(t.unique(dim=0, return_inverse=True, return_counts=True) for t in (x.to("gpu"), x))):
        assert torch.equal(got.cpu(), want)
