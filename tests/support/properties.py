"""The properties of the op table. Each takes (op, device) and returns (problems, number of samples checked).

A problem is a line of text that starts with the sample. If the GPU may reject a call (an unsupported dtype),
the sample is not counted; the CPU may reject nothing, nor may the GPU in its core dtypes.
"""

import doctest
import re

import numpy as np

from support import extremes, numeric, target
from support.checking import UNSTATED, compare, dtypes, each, may_refuse, referenced, run, same, shapes, unrecord
from support.layouts import stepped, transposed
from support.optable import Op, key, only_here, recorded
from support.outs import taken
from support.samples import Call, TensorSpec, doubled, edge_variants, parse, retyped
from support.signature import bind, params
from support.target import torch

# --- against the oracle ------------------------------------------------------------------------------


def unstated(op: Op) -> str | None:
    """The problem of a missing oracle: none for a helper op, which is checked through its public op."""
    return None if op.hidden else UNSTATED


def forward(op: Op, device: str):
    def check(call):
        result, _ = run(op, call, device)
        answer = recorded(op, call.text)
        if answer and "error" in answer and not op.reference:
            return f"PyTorch raises {answer['error']}: {answer['message']}"
        if op.undefined and op.reference in (None, "shape"):
            if not answer:
                return unstated(op)
            wants = answer["out"] if isinstance(answer["out"], list) else [answer["out"]]
            wrong = [(tuple(w["shape"]), w["dtype"]) for w in wants] != list(zip(shapes(result), dtypes(result)))
            return f"{shapes(result)} {dtypes(result)} is not PyTorch's" if wrong else ""
        want = referenced(op, call)
        if want is None and (not answer or "error" in answer):
            return unstated(op)
        return compare(result, unrecord(answer["out"]) if want is None else want)

    return each(op, check, name="forward")


def gradient(op: Op, device: str):
    def check(call):
        answer = recorded(op, call.text)
        if not answer or "grads" not in answer or op.undefined:
            return None
        _, gradients = run(op, call, device, grad=True)
        wrong = [a["dtype"] for a in answer["grads"]] != dtypes(gradients)
        return f"gradients are {dtypes(gradients)}" if wrong else compare(gradients, unrecord(answer["grads"]), 4)

    return each(op, check, name="gradient")


def edges(op: Op, device: str):
    def check(call):
        what, want = wanted[call.text]
        if want is None and not op.hidden and only_here(op):
            difference = compare(run(op, call, device)[0], referenced(op, call))
            return f"{what}: {difference}" if difference else ""
        if want is None:
            return unstated(op)
        try:
            result, _ = run(op, call, device)
            if device == "gpu":
                torch.gpu.synchronize()  # errors from the device are raised when the host waits, at the latest
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            if may_refuse(op, call, error):
                raise
            return "" if "error" in want else f"{what}: raised {type(error).__name__}: {error}"
        if "error" in want:
            return f"{what}: PyTorch raises {want['error']}: {want['message']}"
        if op.undefined:
            return ""
        difference = compare(result, unrecord(want["out"]), signs=what == "special" and op.kind == "elementwise")
        return f"{what}: {difference}" if difference else ""

    wanted = {}
    for sample in op.sample_texts()[:3]:
        for what, text in edge_variants(sample).items():
            wanted[text] = (what, recorded(op, text, what))
    return each(op, check, list(wanted), "edges")


def result_dtype(op: Op, device: str):
    swept = next((t for t in op.sample_texts() if "f32[" in t), None)
    answers = recorded(op, swept, "dtypes") if swept else None
    if swept and not answers and only_here(op):
        return [], 0
    if swept and not answers and not op.hidden:
        return [f"{swept}: {UNSTATED} ({key(op.public, swept, 'dtypes')})"], 1

    def check(call):
        want = wanted[call.text]
        result, _ = run(op, call, device)
        got = ",".join(dtypes(result)) or "none"
        return "" if want == got else f"the result is {got}, PyTorch's {want}"

    floats = {"f16", "bf16", "f32", "f64"}
    kept = {
        d: w for d, w in (answers or {}).items() if w not in ("error", "none") and (d in floats or not op.undefined)
    }
    wanted = {retyped(swept, d): w for d, w in kept.items()}
    return each(op, check, list(wanted), "result dtype")


def extreme(op: Op, device: str):
    """Zeros, subnormals, huge and tiny numbers, poles, infinities and NaN, in both widths, against many digits."""
    problems, count, needed = [], 0, {}
    for dtype in ("f32", "f64") if device == "cpu" else ("f32",):
        for call, arrays in extremes.calls(op, dtype):
            if device == "gpu":
                arrays = extremes.normal(arrays)
            want = extremes.expected(op, call, arrays)
            args, kwargs, _ = target.build(extremes.given(call, arrays), device)
            try:
                got = target.to_numpy(op.run(args, kwargs))
            except RuntimeError as error:
                if may_refuse(op, call, error):
                    continue
                raise
            count += want.size
            if got.shape != want.shape:
                problems.append(f"{call.text}: shape {got.shape} is not {want.shape}")
                continue
            wrong = extremes.wrong(got, want, dtype, device)
            values = {"want": want, "got": got, "dtype": dtype, **{f"x{i}": a for i, a in enumerate(arrays)}}
            for reason, where in extremes.known_at(op, device, values):
                needed[reason] = needed.get(reason, False) or bool((wrong & where).any())
                wrong = wrong & ~where
            at = np.nonzero(wrong)[0]
            words = [
                f"at {', '.join(f'{float(a[i]):.9g}' for a in arrays)}: {got[i]!r} is not {want[i]!r}" for i in at[:8]
            ]
            if words:
                problems.append(f"{call.text} in {dtype}: {len(at)} of {want.size} differ: " + "; ".join(words))
    if not extremes.is_hardware(device):
        problems += [
            f"known.EXTREMES is wrong, there is no difference: {r}" for r, found in needed.items() if not found
        ]
    return problems, count


# --- gradients ---------------------------------------------------------------------------------------


def derivable(call: Call):
    """The call in double precision, or None if there is nothing to differentiate or it is not smooth there."""
    wide = doubled(call)
    leaves = [s for s in wide.tensors() if s.differentiable]
    rough = any(s.fill in ("special", "ties", "zeros") or "nan" in s.fill or "inf" in s.fill for s in leaves)
    return None if rough or not leaves or any(0 in s.shape for s in leaves) else wide


def gradcheck(op: Op, device: str):
    def check(call):
        wide = derivable(call)
        return None if wide is None else numeric.gradcheck(op, wide)

    return each(op, check, name="gradcheck")


def gradgradcheck(op: Op, device: str):
    def check(call):
        wide = derivable(call)
        return None if wide is None else numeric.gradgradcheck(op, wide)

    return each(op, check, name="gradgradcheck")


# --- the same result another way ---------------------------------------------------------------------


def same_as_cpu(op: Op, device: str):
    def check(call):
        result, gradients = run(op, call, "gpu", op.differentiable)
        if op.leaf.startswith("empty"):
            return ""
        expected, slopes = run(op, call, "cpu", op.differentiable)
        if any(t.device.type != "gpu" for t in target.tensors(result)):
            return "the result is not on the gpu"
        if op.draws:
            alike = shapes(result) == shapes(expected) and dtypes(result) == dtypes(expected)
            return "" if alike else "shapes or dtypes differ"
        return same(result, expected, 4) or same(gradients, slopes, 8)

    if not op.gpu:
        return each(op, lambda call: refuses(op, call))
    return each(op, check, name="same as CPU")


def on_device(op: Op, device: str):
    """A call and its gradient stay on the GPU: they may read back a number (a size, a condition), but no tensor."""

    def check(call):
        args, kwargs, leaves = target.build(call, device, op.differentiable)
        before = torch.gpu.stats()["tensors read"]
        result = op.run(args, op.placed(args, kwargs, device))
        target.gradients(target.carriers(result), leaves)
        read = torch.gpu.stats()["tensors read"] - before
        return f"{read} tensors passed through the host" if read else ""

    return each(op, check, name="on device")


def refuses(op: Op, call: Call):
    """An op without a shader raises an error that names the op and the device."""
    args, kwargs, _ = target.build(call, "gpu")
    try:
        op.run(args, op.placed(args, kwargs, "gpu"))
    except (RuntimeError, NotImplementedError) as error:
        # A helper of `linalg.qr` is named after it.
        names = op.leaf.strip("_").removeprefix("linalg_") in str(error) and "gpu" in str(error)
        return "" if names else f"the message does not name the op and the device: {error}"
    return "the op says that it does not run on the gpu, but it did"


def strided(op: Op, device: str):
    def check(call):
        expected, slopes = run(op, call, device, op.differentiable)
        for maker in (transposed, stepped):
            try:
                result, gradients = run(op, call, device, op.differentiable, maker)
            except RuntimeError:
                if op.kind == "view":
                    continue  # a view with these strides may not exist
                raise
            difference = same(result, expected) or same(gradients, slopes, 2)
            if difference and not op.undefined:
                return f"{maker.__name__}: {difference}"
        return ""

    return each(op, check, name="strided")


def expanded(op: Op, device: str):
    def narrow(spec):
        array = spec.array()
        if spec.fill.startswith("="):
            return array, None
        dim = next((d for d, size in enumerate(array.shape) if size > 1), None)
        return (array, None) if dim is None else (array.take([0], dim), dim)

    def broadcast(spec, device):
        array, dim = narrow(spec)
        tensor = target.make(spec, device, array)
        return tensor if dim is None else tensor.expand(spec.shape)

    def copied(spec, device):
        array, _ = narrow(spec)
        return target.make(spec, device, np.broadcast_to(array, spec.shape).copy())

    def check(call):
        if not any(max(s.shape, default=0) > 1 for s in call.tensors()) or op.undefined:
            return None
        try:
            result, _ = run(op, call, device, maker=broadcast)
        except RuntimeError:
            # What the op writes to, besides the result, may not be expanded.
            if op.kind == "view" or op.signature.count("Tensor!") > 1:
                return None
            raise
        return same(result, run(op, call, device, maker=copied)[0])

    return each(op, check, name="expanded")


def method(op: Op, device: str):
    def check(call):
        args, kwargs, _ = target.build(call, device)
        if not args or not isinstance(args[0], torch.Tensor):
            return None
        expected = op.run(args, kwargs)
        torch.manual_seed(0)
        args, kwargs, _ = target.build(call, device)
        if op.only_inplace:
            args[0] = args[0].clone()
        result = getattr(args[0], op.leaf)(*args[1:], **kwargs)
        return "" if op.undefined else same(result, expected)

    return each(op, check, name="method")


def in_place(op: Op, device: str):
    in_place_form = getattr(torch.Tensor, f"{op.leaf}_", None) or target.resolve(f"{op.public}_")

    def check(call):
        if not isinstance(call.args[0], TensorSpec):
            return None
        expected, slopes = run(op, call, device, op.differentiable)
        args, kwargs, leaves = target.build(call, device, op.differentiable)
        x = args[0].clone()
        fits = dtypes(x) == dtypes(expected) and shapes(x) == shapes(expected)
        version = x._version
        torch.manual_seed(0)
        try:
            result = in_place_form(x, *args[1:], **kwargs)
        except RuntimeError as error:
            return "" if not fits else f"raised {error}"
        if not fits and shapes(x) != shapes(expected):
            return f"took a result of shape {shapes(expected)} in place"
        if result is not x or x._version <= version:
            return "does not return the tensor itself" if result is not x else "does not bump the version"
        if not fits:
            return ""
        gradients = target.gradients(target.carriers(result), leaves) if slopes else []
        return "" if op.undefined else same(result, expected) or same(gradients, slopes)

    return each(op, check, name="in-place")


def out(op: Op, device: str):
    def check(call):
        expected, _ = run(op, call, device)
        args, kwargs, _ = target.build(call, device)
        kwargs = op.placed(args, kwargs, device)
        several = not isinstance(expected, torch.Tensor)
        goals = [torch.zeros_like(t) for t in target.tensors(expected)]

        def call_out(goals):
            torch.manual_seed(0)
            return op.call(*args, **kwargs, out=tuple(goals) if several else goals[0])

        result = target.tensors(call_out(goals))
        if any(r is not g for r, g in zip(result, goals)):
            return "does not return out itself"
        if op.undefined:
            return ""
        if difference := same(goals, target.tensors(expected)):
            return difference
        empty = [torch.zeros(0, dtype=g.dtype, device=g.device) for g in goals]
        call_out(empty)
        if difference := same(empty, target.tensors(expected)):
            return f"resized: {difference}"
        return "" if several else wrong_out(op, call, call_out, expected) or aliased_out(op, call, device)

    return each(op, check, name="out")


def wrong_out(op: Op, call: Call, call_out, expected) -> str:
    """`out` of other dtypes, or overlapping an operand, is accepted or rejected as by PyTorch."""
    if expected.numel() > 1:
        try:
            call_out([torch.zeros(1, dtype=expected.dtype, device=expected.device).expand(expected.shape)])
            return "an expanded out was accepted"
        except RuntimeError:
            pass
    want = recorded(op, call.text, "outs")
    if not want or expected.device.type != "cpu":
        return ""
    got = taken(op.call, call, expected)
    return "".join(
        f"out {kind}: taken is {got[kind]}, PyTorch's {want[kind]}; " for kind in got if got[kind] != want[kind]
    )


def aliased_out(op: Op, call: Call, device: str) -> str:
    """`out` that is an input: the right result, or an error."""
    expected, _ = run(op, call, device)
    args, kwargs, _ = target.build(call, device)
    x = args[0] if args else None
    if not isinstance(x, torch.Tensor) or dtypes(x) != dtypes(expected) or shapes(x) != shapes(expected):
        return ""
    try:
        torch.manual_seed(0)
        op.call(*args, **kwargs, out=x)
    except RuntimeError:
        return ""
    difference = same(x, expected)
    return f"out is an input: {difference}" if difference else ""


def fused(op: Op, device: str):
    """The fused kernel against the composite that it replaces."""

    def check(call):
        results = []
        for composite in (False, True):
            args, kwargs, leaves = target.build(call, device, op.differentiable)
            torch.manual_seed(0)
            if composite:
                bound = bind(op.signature, args, kwargs)
                result = torch._C._call_composite(op.name, *(bound[p.name] for p in params(op.signature)))
            else:
                result = target.tensors(op.call(*args, **kwargs))[0]
            results.append((result, target.gradients(target.carriers(result), leaves)))
        (expected, slopes), (result, gradients) = results
        return same(result, expected, 2) or same(gradients, slopes, 4)

    return each(op, check, name="fused")


def any_byte(op: Op, device: str):
    """Any non-zero byte is a true bool."""

    def dirty(spec, device):
        if spec.dtype != "b8":
            return target.make(spec, device)
        flat = spec.array().reshape(-1)
        bytes_ = np.where(flat, np.resize(np.array([255, 128, 2, 1], np.uint8), flat.shape), np.uint8(0))
        return torch.tensor(bytes_, dtype=torch.uint8).view(torch.bool).reshape(spec.shape).to(device)

    def check(call):
        if not any(s.dtype == "b8" and s.shape != () for s in call.tensors()) or op.undefined:
            return None
        return same(run(op, call, device, maker=dirty)[0], run(op, call, device)[0])

    swept = next((t for t in op.sample_texts() if "f32[" in t), None)
    answers = recorded(op, swept, "dtypes") if swept else None
    also = [retyped(swept, "b8")] if answers and answers.get("b8", "error") not in ("error", "none") else []
    return each(op, check, op.sample_texts() + also, "any byte")


# --- words -------------------------------------------------------------------------------------------


def errors(op: Op, device: str):
    problems, count = [], 0
    for text, name, part in op.errors:
        try:
            args, kwargs, _ = target.build(parse(text), device)
        except NotImplementedError:
            assert device == "gpu", text
            continue  # a dtype that the device does not have
        count += 1
        deferred = False
        try:
            op.run(args, op.placed(args, kwargs, device))
            deferred = device == "gpu"
            if deferred:
                torch.gpu.synchronize()
            problems.append(f"{text}: no error; {name} with {part!r} is declared")
        except Exception as error:
            if device == "gpu" and not op.gpu and "no shader" in str(error):
                continue  # rejected before its values are read
            right_class = name in {c.__name__ for c in type(error).__mro__}
            no_overload = name == "TypeError" and "invalid combination of arguments" in str(error)
            # Errors from the device come from the kernel: the class is PyTorch's, the message is not.
            if not right_class or not (part in str(error) or no_overload or deferred):
                problems.append(f"{text}: {name} with {part!r} is declared, got {type(error).__name__}: {error}")
            if names_twice(str(error), op.public.split(".")[-1].strip("_")):
                problems.append(f"{text}: the message names the op twice: {error}")
    return problems, count


def names_twice(message: str, name: str) -> bool:
    """Whether a message reads `op: op(): problem`."""
    return bool(re.match(rf"[a-z.]*{re.escape(name)}_?: (torch\.)?{re.escape(name)}(?![A-Za-z0-9]|_[a-z])", message))


def example(op: Op, device: str):
    names = {"torch": torch, target.NAME: torch, "F": torch.nn.functional, "nn": torch.nn}
    test = doctest.DocTestParser().get_doctest(op.doc, names, op.name, None, 0)
    heard: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test, out=heard.append)
    return heard, len(test.examples)
