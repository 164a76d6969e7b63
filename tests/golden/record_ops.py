"""Records PyTorch's results for every sample of the op table.

    python tests/golden/record_ops.py --list > samples.json            # with rustgrad: the samples of OPS
    python tests/golden/record_ops.py samples.json > tests/golden/ops.json   # with torch: its results

`make golden TORCH_PYTHON=...` does both. A result has dtypes, shapes, values and gradients, or the class of the
error. Edge cases of each sample are recorded too (no rows, no columns, 0-d, special values), and for the
first sample the result's dtype for every dtype of the inputs and which `out` is accepted.
"""

import json
import os
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
DTYPE_SWEEP = ["b8", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"]


def listing() -> list[dict]:
    """What to record: public name and samples of every op."""
    from support.optable import ops

    return [
        {
            "public": op.public,
            "samples": op.written_out(),
            "grad": op.differentiable,
            "hidden": op.hidden,
            "out": op.out,
        }
        for op in ops()
    ]


def flat(array):
    """Values as JSON: float32 with its shortest digits, complex numbers as pairs."""
    import numpy as np

    if array.dtype.kind == "c":
        return [[float(str(v.real)), float(str(v.imag))] for v in array.reshape(-1)]
    if array.dtype in (np.float32, np.float16):
        return [float(str(v)) for v in array.reshape(-1)]
    return array.reshape(-1).tolist()


def describe(value):
    from support import target

    if isinstance(value, target.torch.Tensor):
        array = target.to_numpy(value)
        return {"dtype": target.dtype_name(value.dtype), "shape": list(array.shape), "values": flat(array)}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, target.torch.dtype):
        return {"is": target.dtype_name(value)}
    return {"is": value if isinstance(value, (bool, int, float, str, type(None))) else str(value)}


def torch_call(public: str, args: list, kwargs: dict):
    """PyTorch's form of the call: the function, else the method, else with a list's tensors as arguments."""
    from support import target
    from support.optable import invoke

    try:
        return invoke(public, args, kwargs)
    except (TypeError, RuntimeError) as error:
        first = args[0] if args else None
        if isinstance(first, list) and "expected Tensor" in str(error):
            return invoke(public, [*first, *args[1:]], kwargs)
        if not isinstance(first, target.torch.Tensor) or "." in public or not hasattr(first, public):
            raise
        try:
            return getattr(first, public)(*args[1:], **kwargs)
        except Exception:
            raise error from None


def answer(public: str, text: str, grad: bool) -> dict:
    """The result of the call: {"out": ...}, with {"grads": ...} if differentiable, or {"error": class}."""
    from support import target
    from support.nodes import nodes
    from support.samples import parse

    call = parse(text)
    try:
        target.torch.manual_seed(0)
        args, kwargs, leaves = target.build(call, grad=grad)
        out = torch_call(public, args, kwargs)
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error).split("\n")[0][:160]}
    found = {"out": describe(out)}
    outputs = target.carriers(out)
    if grad and outputs:
        found["nodes"] = nodes(outputs)
    if grad and outputs and leaves:
        try:
            found["grads"] = [describe(g) for g in target.gradients(outputs, leaves)]
        except RuntimeError as error:
            found["no grads"] = str(error)[:160]
    return found


def layouts(public: str, text: str) -> dict:
    """The strides of the results, for several layouts of the arguments; empty if PyTorch rejects the call."""
    from support.layouts import strides
    from support.samples import parse

    try:
        return strides(lambda args, kwargs: torch_call(public, args, kwargs), parse(text))
    except Exception:
        return {}


def result_dtype(public: str, text: str) -> str:
    found = answer(public, text, False)
    outs = found.get("out", {"dtype": "error"})
    outs = outs if isinstance(outs, list) else [outs]
    return ",".join(o.get("dtype", "none") for o in outs)


def outs(public: str, text: str) -> dict:
    """For each kind of `out`, whether the call accepts it; empty if PyTorch has no `out` or rejects the call."""
    from support import target
    from support.outs import taken
    from support.samples import parse

    try:
        args, kwargs, _ = target.build(parse(text))
        result = torch_call(public, args, kwargs)
        found = taken(lambda *a, **k: torch_call(public, list(a), k), parse(text), result)
    except Exception:
        return {}
    return found if any(found.values()) else {}


def known_to_torch(public: str) -> bool:
    from support import target

    try:
        return bool(target.resolve(public))
    except (AttributeError, KeyError):
        return False


def record(rows: list[dict]) -> dict:
    from support.optable import key
    from support.samples import edge_variants, parse, retyped

    calls = {}
    for row in rows:
        public, grad = row["public"], row["grad"]
        if row["hidden"]:
            continue  # a helper op: PyTorch's op of the same name, if any, is a different one
        if not known_to_torch(public):
            print(f"record_ops: PyTorch has no public {public}; its reference must be NumPy", file=sys.stderr)
            continue
        for i, text in enumerate(row["samples"]):
            calls[key(public, text)] = answer(public, text, grad)
            if any(len(t.shape) > 1 for t in parse(text).tensors()):
                calls[key(public, text, "strides")] = layouts(public, text)
            if i < 3:
                for what, edge in edge_variants(text).items():
                    calls[key(public, edge, what)] = answer(public, edge, False)
        if row.get("out") and row["samples"]:
            calls[key(public, row["samples"][0], "outs")] = outs(public, row["samples"][0])
        swept = next((t for t in row["samples"] if "f32[" in t), None)
        if swept:
            found = {d: result_dtype(public, retyped(swept, d)) for d in DTYPE_SWEEP}
            calls[key(public, swept, "dtypes")] = found
    return calls


def main():
    if sys.argv[1:] == ["--list"]:
        print(json.dumps(listing()))
        return
    os.environ["RUSTGRAD_TEST_MODULE"] = "torch"
    import torch

    warnings.simplefilter("ignore")
    rows = listing() if sys.argv[1:] == ["--stand-in"] else json.loads(Path(sys.argv[1]).read_text())
    answers = os.dup(1)
    os.dup2(2, 1)  # discard the output of libraries below PyTorch
    calls = record(rows)
    os.dup2(answers, 1)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in calls.items())
    print(f'{{"torch": "{torch.__version__}", "calls": {{\n{lines}\n}}}}')


if __name__ == "__main__":
    main()
