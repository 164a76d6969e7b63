"""Building blocks of the op table's properties: running a sample, reading the oracle, comparing results."""

import numpy as np

from support import known, target
from support.optable import Op, recorded
from support.samples import Call, DTypeName, TensorSpec, parse
from support.signature import bind
from support.target import torch

CORE_DTYPES = {"f32", "i32", "b8"}
UNSTATED = "no oracle: neither a NumPy reference nor a recorded answer; run `make golden` with PyTorch"


def may_refuse(op: Op, call: Call, error: Exception) -> bool:
    """Whether this is the GPU's error for an unsupported dtype; never for its core dtypes, nor on the CPU."""
    core = {s.dtype for s in call.tensors()} <= CORE_DTYPES
    return isinstance(error, RuntimeError) and "gpu" in str(error) and not (op.gpu and core)


def each(op: Op, check, texts=None, name: str = ""):
    """Runs check(call) over the samples; check describes a difference ("" if none); None means not applicable."""
    problems, count = [], 0
    texts = op.sample_texts() if texts is None else texts
    if not op.samples:
        problems.append("the op has no sample")
    for text in texts:
        if known.not_about(name, op.leaf, text):
            continue
        call = parse(text)
        try:
            difference = check(call)
        except Exception as error:
            if may_refuse(op, call, error):
                continue
            difference = f"raised {type(error).__name__}: {str(error)[:300]}"
        if difference is not None:
            count += 1
        if difference:
            problems.append(f"{text}: {difference}")
    return problems, count


def run(op: Op, call: Call, device: str, grad: bool = False, maker=target.make):
    """(result, gradients) of a call on a device."""
    args, kwargs, leaves = target.build(call, device, grad, maker)
    result = op.run(args, op.placed(args, kwargs, device))
    outputs = target.carriers(result) if grad else []
    return result, target.gradients(outputs, leaves) if outputs else []


def unrecord(answer):
    """A recorded result as NumPy arrays."""
    if isinstance(answer, list):
        return [unrecord(a) for a in answer]
    if "is" in answer:
        return answer["is"]
    kind = np.float32 if answer["dtype"] == "bfloat16" else answer["dtype"]
    if answer["dtype"].startswith("complex"):
        pairs = np.array(answer["values"], dtype=np.float64).reshape(-1, 2)
        return pairs.view(np.complex128).astype(kind).reshape(answer["shape"])
    return np.array(answer["values"], dtype=kind).reshape(answer["shape"])


def compare(result, want, scale: float = 1.0, signs: bool = False) -> str:
    """Compares a result (tensors inside) with NumPy values, at the tolerance of each tensor's dtype."""
    if isinstance(result, (tuple, list)) and isinstance(want, (tuple, list)):
        if len(result) != len(want):
            return f"{len(result)} results, {len(want)} are wanted"
        found = [compare(r, w, scale, signs) for r, w in zip(result, want)]
        return "; ".join(f"[{i}] {d}" for i, d in enumerate(found) if d)
    if isinstance(result, torch.Tensor):
        return target.differ(target.to_numpy(result), want, scale, signs, target.dtype_name(result.dtype))
    if isinstance(result, torch.dtype):
        return "" if target.dtype_name(result) == want else f"{result} is not {want}"
    return target.differ(result, want, scale, signs)


def dtypes(result):
    return [target.dtype_name(t.dtype) for t in target.tensors(result)]


def shapes(result):
    return [tuple(t.shape) for t in target.tensors(result)]


def same(a, b, scale: float = 1.0) -> str:
    """Compares two results of the module under test, dtypes included."""
    if dtypes(a) != dtypes(b):
        return f"dtypes {dtypes(a)} are not {dtypes(b)}"
    return compare(a, target.loose(b), scale)


def scipy_names() -> dict:
    """SciPy for the references that use it, if it is installed."""
    try:
        import scipy.special

        return {"scipy": scipy, "special": scipy.special}
    except ImportError:
        return {}


def referenced(op: Op, call: Call):
    """The op's NumPy reference for a call, in double precision; None if it has none for these arguments."""
    if not op.reference or op.reference == "shape":
        return None

    def wide(spec: TensorSpec):
        array = spec.array()
        return array.astype({"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype))

    built = call.map(wide)
    bound = bind(op.signature, built.args, built.kwargs)
    bound = {k: v.name if isinstance(v, DTypeName) else v for k, v in bound.items()}
    names = {"np": np, **{f"x{i}": a for i, a in enumerate(built.args)}, **bound}
    try:
        with np.errstate(all="ignore"):
            return eval(op.reference, scipy_names() | names)
    except Exception:
        if recorded(op, call.text):
            return None  # NumPy cannot, PyTorch's answer can
        raise
