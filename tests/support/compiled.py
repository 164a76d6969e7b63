"""Properties of the op table under `compile`: a compiled call shows what the call shows, watched and replayed."""

import warnings

from support import target
from support.captures import turned
from support.checking import each, shapes
from support.optable import Op
from support.target import torch

# One call as it is, two recorded ones, and two by the plan, with other values each time.
MAKERS = (target.make, turned, target.make, turned, target.make)


def function_of(op: Op):
    name = op.public if op.function or op.hidden else f"Tensor.{op.leaf}"
    return target.resolve(name)


def bits(tensors) -> list:
    """Form and bytes of tensors, so that -0.0 is not 0.0 and one NaN not another."""
    one = torch._C._storage_bytes
    return [(t.dtype, tuple(t.shape), t.stride(), one(t.detach().contiguous().clone())) for t in tensors]


def same(a, b) -> str:
    """The first tensor whose bits differ."""
    for i, (one, other) in enumerate(zip(bits(a), bits(b), strict=True)):
        if one != other:
            return f"tensor {i} is {a[i]}, expected {b[i]}"
    return ""


def seen(f, args, kwargs):
    """The tensors of the result and of the arguments after the call; or the error."""
    torch.manual_seed(0)
    try:
        result = f(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return target.tensors(result), target.tensors([*args, *kwargs.values()]), torch.get_rng_state().tolist()


def difference(op: Op, got, expected, i: int) -> str:
    if isinstance(expected[0], type) or isinstance(got[0], type):
        return "" if got == expected else f"call {i}: {got} is not {expected}"
    if op.leaf.startswith(("empty", "new_empty")):
        return "" if shapes(got[0]) == shapes(expected[0]) else f"call {i}: shapes differ"
    told = same(got[0], expected[0]) or same(got[1], expected[1])
    if not told and [t._version for t in got[0]] != [t._version for t in expected[0]]:
        told = "versions differ"
    if not told and got[2] != expected[2]:
        told = "the random stream differs"
    return f"call {i}: {told}" if told else ""


def forward(op: Op, device: str):
    """Calls of the compiled op on inputs of one form are those of the op, bit by bit, in place writes included."""
    function = function_of(op)

    def check(call):
        def f(*args, **kwargs):
            return function(*args, **kwargs)

        compiled = torch.compile(f)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, maker in enumerate(MAKERS):
                runs = []
                for run in (f, compiled):
                    args, kwargs, _ = target.build(call, device, maker=maker)
                    runs.append(seen(run, args, op.placed(args, kwargs, device)))
                if told := difference(op, runs[1], runs[0], i):
                    return f"{told}, by {compiled._compiled_state.road}"
        return ""

    return each(op, check, name="compiled forward")


def gradient(op: Op, device: str):
    """A compiled forward and backward leaves the gradients that the two leave, and adds to them."""
    function = function_of(op)

    def check(call):
        def f(*args, **kwargs):
            out = function(*args, **kwargs)
            if isinstance(out, torch.Tensor) and out.requires_grad:
                out.backward(torch.ones_like(out))

        compiled = torch.compile(f)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, maker in enumerate(MAKERS):
                runs = []
                for run in (f, compiled):
                    args, kwargs, leaves = target.build(call, device, True, maker)
                    told = seen(run, args, op.placed(args, kwargs, device))
                    runs.append((told if isinstance(told[0], type) else (), [leaf.grad for leaf in leaves]))
                (wrong, grads), (expected_wrong, expected) = runs[1], runs[0]
                if wrong != expected_wrong or [g is None for g in grads] != [g is None for g in expected]:
                    return f"call {i}: {wrong} {grads} is not {expected_wrong} {expected}"
                there = [g for g in grads if g is not None], [g for g in expected if g is not None]
                if told := same(*there):
                    return f"call {i}: {told}, by {compiled._compiled_state.road}"
        return ""

    return each(op, check, name="compiled gradient")
