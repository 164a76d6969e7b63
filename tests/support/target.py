"""The module under test, and conversions to and from it.

`torch` here is rustgrad, or the module named by `pytest --module`: `--module torch` runs the tests with PyTorch, which
tests the tests. Values are exchanged as NumPy arrays.
"""

import functools
import importlib
import os

import numpy as np

from support.samples import DTYPES, Call, DTypeName, TensorSpec, seeded

NAME = os.environ.get("RUSTGRAD_TEST_MODULE", "rustgrad")
# The best adapter, even a software one, which counts as a GPU only on request.
os.environ.setdefault("RUSTGRAD_GPU", "0")
torch = importlib.import_module(NAME)
STAND_IN = NAME != "rustgrad"

# Allowed relative and absolute error of a result against an oracle, by dtype.
TOLERANCE = {
    "float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2), "float32": (2e-5, 2e-5), "complex64": (3e-5, 3e-5),
    "float64": (1e-9, 1e-9), "complex128": (1e-9, 1e-9),
}  # fmt: skip


def gpu_reason() -> str:
    """Why the GPU cannot be tested here; empty if it can."""
    if STAND_IN:
        return f"{NAME} has no device called gpu"
    return "" if torch.gpu.is_available() else "no GPU and no Vulkan driver here (install mesa-vulkan-drivers)"


def dtype_of(name: str):
    return getattr(torch, DTYPES.get(name, name))


def dtype_name(dtype) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def make(spec: TensorSpec, device: str = "cpu", array: np.ndarray | None = None):
    """A fresh contiguous tensor of the spec's dtype."""
    array = spec.array() if array is None else array
    if not array.size:
        return torch.zeros(array.shape, dtype=dtype_of(spec.dtype)).to(device)
    tensor = torch.tensor(np.ascontiguousarray(array), dtype=dtype_of(spec.dtype)).reshape(array.shape)
    return tensor if device == "cpu" else tensor.to(device)


def build(call: Call, device: str = "cpu", grad: bool = False, maker=make):
    """(args, kwargs, the tensors that require grad) of a call, on a device."""
    leaves = []

    def one(spec):
        tensor = maker(spec, device)
        if grad and spec.differentiable:
            tensor.requires_grad_()
            leaves.append(tensor)
        return tensor

    built = call.map(one)
    kwargs = {k: dtype_of(v.name) if isinstance(v, DTypeName) else v for k, v in built.kwargs.items()}
    return [dtype_of(a.name) if isinstance(a, DTypeName) else a for a in built.args], kwargs, leaves


def resolve(path: str):
    """The function at a dotted public path: `nn.functional.relu`; else the method: `expand`; else the hidden op."""
    found = torch
    for part in path.split("."):
        found = getattr(found, part, None)
    found = found or getattr(torch.Tensor, path.removeprefix("Tensor."), None)
    return found or torch._C.ops[path]


def tensors(result) -> list:
    """The tensors of a result, including those in tuples and lists."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for item in result for t in tensors(item)]
    return []


def to_numpy(tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if STAND_IN:
        tensor = tensor.resolve_conj().resolve_neg()
        tensor = tensor.to(torch.complex64) if tensor.dtype == torch.complex32 else tensor
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.to(torch.float32)
    return np.array(tensor.numpy())


def loose(value):
    """A result with its tensors as NumPy arrays."""
    if isinstance(value, torch.Tensor):
        return to_numpy(value)
    if isinstance(value, (tuple, list)):
        return [loose(v) for v in value]
    return value


def cotangents(outputs, seed: int = 0):
    """Fixed directions to differentiate along, one for each output that requires grad."""
    found = []
    for i, out in enumerate(outputs):
        array = cotangent_array(tuple(out.shape), dtype_name(out.dtype), seed + i)
        found.append(torch.tensor(array, dtype=out.dtype).reshape(out.shape).to(out.device))
    return found


@functools.lru_cache(maxsize=1 << 10)
def cotangent_array(shape: tuple, dtype: str, seed: int) -> np.ndarray:
    rng = seeded(1000 + seed)
    array = rng.randint(-8, 9, shape) / 4.0 + 0.125
    return array + 1j * (rng.randint(-8, 9, shape) / 4.0) if dtype.startswith("complex") else array


def carriers(result) -> list:
    """The differentiable outputs."""
    return [t for t in tensors(result) if t.requires_grad]


def gradients(outputs, leaves, directions=None, create_graph: bool = False) -> list:
    """d(outputs)/d(leaves) along the directions; zeros for leaves they do not depend on."""
    if not outputs or not leaves:
        return [torch.zeros_like(x) for x in leaves]
    directions = cotangents(outputs) if directions is None else directions
    found = torch.autograd.grad(outputs, leaves, directions, create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves)]


def differ(got, want, scale: float = 1.0, signs: bool = False, dtype: str | None = None) -> str:
    """A description of the difference between two results; empty if they agree."""
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"a sequence of {len(want)} is wanted, got {got!r}"
        found = [differ(g, w, scale, signs, dtype) for g, w in zip(got, want)]
        return "; ".join(f"[{i}] {d}" for i, d in enumerate(found) if d)
    if not isinstance(want, (np.ndarray, np.generic, int, float, complex, bool)):
        return "" if got == want else f"{got!r} is not {want!r}"
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape} is not {want.shape}"
    kind = dtype or (str(got.dtype) if got.dtype.kind in "fc" else str(want.dtype))
    rtol, atol = TOLERANCE.get(kind, (0, 0))
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(a, b, rtol * scale, atol * scale, equal_nan=True)
        if signs and got.dtype.kind == "f":
            wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} differ, first at {at}: {got[at]!r} is not {want[at]!r}"
