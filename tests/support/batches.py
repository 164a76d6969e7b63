"""`vmap` over each op of the table: equal to a loop over the examples, by values, dtypes and shapes, and in gradients.

The same for functions of examples that differentiate, write in place or are batched twice.
"""

import warnings

import numpy as np

from support import target
from support.checking import each
from support.optable import Op
from support.samples import TensorSpec
from support.target import torch

SIZE = 3


# Which elements are in another order in the examples: indices may be out of range then, matrices no longer positive-definite.
TURNS = (("numbers", "integers"), ("numbers",), ())


def maker(example: int, turns: tuple):
    """Makes the tensors of one example: the elements of the sample in another order, so that their kind is kept."""

    def make(spec: TensorSpec, device: str):
        array = spec.array()
        if array.size > 1 and example and ("numbers" if spec.differentiable else "integers") in turns:
            flat = array.reshape(-1)
            flat = flat[::-1] if example == 1 else np.roll(flat, 1)
            array = np.ascontiguousarray(flat).reshape(array.shape)
        return target.make(spec, device, array)

    return make


def walk(value, f):
    """`value` with its tensors replaced by f(tensor)."""
    if isinstance(value, torch.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)):
        return type(value)(walk(v, f) for v in value)
    return {k: walk(v, f) for k, v in value.items()} if isinstance(value, dict) else value


def examples(op: Op, call, device: str, turns: tuple, grad: bool = False):
    """(args, kwargs) of each example."""
    built = [target.build(call, device, grad, maker(i, turns))[:2] for i in range(SIZE)]
    return [(args, op.placed(args, kwargs, device)) for args, kwargs in built]


def looped(op: Op, given, run=None) -> list:
    """Each result of the op, or of run(args, kwargs), stacked over the examples."""
    columns = zip(*(target.tensors((run or op.run)(args, kwargs)) for args, kwargs in given), strict=True)
    return [torch.stack(list(c)) for c in columns]


def vmapped(op: Op, given, batched, last: bool, run=None):
    """The same by `vmap`, with the tensors of these numbers batched, in the last dimension if `last`."""
    lists = [target.tensors([args, list(kwargs.values())]) for args, kwargs in given]
    args, kwargs = given[0]
    place = -1 if last else 0
    tensors = [torch.stack([ts[i] for ts in lists], place) for i in batched]

    def one(*chosen):
        at, chosen = iter(range(len(lists[0]))), dict(zip(batched, chosen, strict=True))
        pick = lambda t: chosen.get(next(at), t)  # noqa: E731
        own = walk(list(args), pick)
        return target.tensors((run or op.run)(own, walk(kwargs, pick)))

    return torch.vmap(one, in_dims=place, randomness="different")(*tensors)


def batched_twice(op: Op, given):
    """`vmap` of `vmap`: outside over the last dimension, inside over the first, and back to the last."""
    lists = [target.tensors([args, list(kwargs.values())]) for args, kwargs in given]
    args, kwargs = given[0]
    tensors = [torch.stack([torch.stack([ts[i] for ts in lists]), torch.stack([ts[i] for ts in lists[::-1]])], -1)
               for i in range(len(lists[0]))]  # fmt: skip

    def one(*chosen):
        chosen = iter(chosen)
        pick = lambda t: next(chosen)  # noqa: E731
        own = walk(list(args), pick)
        return tuple(target.tensors(op.run(own, walk(kwargs, pick))))

    inner = torch.vmap(one, out_dims=-1, randomness="different")
    got = torch.vmap(inner, in_dims=-1, randomness="different")(*tensors)
    return [t.movedim(-1, 1) for t in got]


def slopes(op: Op, varied):
    """run(args, kwargs): the gradients of the op by its tensors of these numbers, taken inside of the function."""

    def run(args, kwargs):
        at, leaves = iter(range(10**6)), []

        def leaf(t):
            if next(at) not in varied:
                return t
            leaves.append(t.detach().requires_grad_())
            return leaves[-1]

        args, kwargs = walk(list(args), leaf), walk(kwargs, leaf)
        with torch.enable_grad():
            outputs = target.carriers(op.run(args, kwargs))
        return target.gradients(outputs, leaves)

    return run


def written(op: Op):
    """run(args, kwargs): the results, written to new memory and to parts of it."""

    def run(args, kwargs):
        found = []
        for out in target.tensors(op.run(args, kwargs)):
            flat, memory = out.reshape(-1), torch.zeros(out.numel() + 2, dtype=out.dtype, device=out.device)
            before = memory.detach()
            memory[1:-1].copy_(flat)
            memory[:1] = memory[-1:]
            memory[1:2].copy_(flat.flip(0)[:1])
            found += [memory.clone(), before[:2] == memory[:2]]
        return found

    return run


def agree(op: Op, got, want, what: str) -> str:
    if len(got) != len(want):
        return f"{what}: {len(got)} results, not {len(want)}"
    for g, w in zip(got, want, strict=True):
        if (tuple(g.shape), g.dtype) != (tuple(w.shape), w.dtype):
            return f"{what}: {g.dtype}{tuple(g.shape)} is not {w.dtype}{tuple(w.shape)}"
        if not op.undefined and (d := target.differ(target.to_numpy(g), target.to_numpy(w), scale=20)):
            return f"{what}: {d}"
    return ""


def variants(n: int):
    yield tuple(range(n)), False
    yield tuple(range(n)), True
    if n > 1:
        yield from (((i,), False) for i in range(n))


def choose(given, batched):
    """The examples in which the tensors of the other numbers are those of the first."""
    first = target.tensors([given[0][0], list(given[0][1].values())])

    def one(args, kwargs):
        at = iter(range(len(first)))
        pick = lambda t: t if (i := next(at)) in batched else first[i].clone()  # noqa: E731
        return walk(list(args), pick), walk(kwargs, pick)

    return [one(args, kwargs) for args, kwargs in given]


def is_refusal(error: Exception) -> bool:
    """Whether vmap says that this cannot be: results of several shapes, values that Python reads, writes to what is shared."""
    return any(
        text in str(error)
        for text in (
            "dynamic shape",
            "read on the host",
            "running_mean or running_var",
            ".item()",
            "data-dependent",
            "is not possible because",
            "inplace randomness",
        )
    )


def vmap(op: Op, device: str):
    """Over a batch an op computes what it computes of each example."""

    def check(call):
        args, kwargs, _ = target.build(call, device)
        count = len(target.tensors([*args, *kwargs.values()]))
        if not count:
            return None
        for turns in TURNS:
            for batched, last in variants(count):
                fresh = lambda t=turns: choose(examples(op, call, device, t), batched)  # noqa: B023, E731
                try:
                    want = looped(op, fresh())
                except (RuntimeError, IndexError, ValueError, NotImplementedError):
                    if turns:
                        break
                    return None  # The sample is refused.
                try:
                    got = vmapped(op, fresh(), batched, last)
                except RuntimeError as error:
                    if is_refusal(error):
                        continue
                    raise
                if d := agree(op, got, want, f"tensors {batched}{' in the last dimension' if last else ''}"):
                    return d
            else:
                return (
                    None if op.undefined else gradients(op, call, device, turns) or transformed(op, call, device, turns)
                )
        return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return each(op, check, name="vmap")


def gradients(op: Op, call, device: str, turns: tuple) -> str:
    """Gradients through the batch are those of the examples."""
    if not op.differentiable or op.only_inplace:
        return ""

    def differentiate(run):
        given = examples(op, call, device, turns, grad=True)
        outputs = [o for o in run(given) if o.requires_grad]
        inputs = [t for args, kwargs in given for t in target.tensors([args, list(kwargs.values())]) if t.requires_grad]
        return target.gradients(outputs, inputs)

    try:
        want = differentiate(lambda given: looped(op, given))
    except (RuntimeError, NotImplementedError):
        return ""  # Not differentiable there.
    count = len(target.tensors([[*a, *k.values()] for a, k in examples(op, call, device, turns)[:1]]))
    try:
        got = differentiate(lambda given: vmapped(op, given, tuple(range(count)), False))
    except RuntimeError as error:
        if is_refusal(error):
            return ""
        raise
    return agree(op, got, want, "gradients")


def transformed(op: Op, call, device: str, turns: tuple) -> str:
    """Gradients inside of the function, a batch of batches, and writes of results."""
    fresh = lambda grad=False: examples(op, call, device, turns, grad)  # noqa: E731
    args, kwargs = fresh(True)[0]
    tensors = target.tensors([args, list(kwargs.values())])
    everything, varied = tuple(range(len(tensors))), {i for i, t in enumerate(tensors) if t.requires_grad}
    slope, write = slopes(op, varied), written(op)
    differentiates = op.differentiable and not op.only_inplace and varied
    ways = [
        ("twice", lambda: twice_looped(op, fresh), lambda: batched_twice(op, fresh())),
        ("written", lambda: looped(op, fresh(), write), lambda: vmapped(op, fresh(), everything, True, write)),
    ]
    if differentiates:
        loop = lambda: looped(op, fresh(), slope)  # noqa: E731
        for last in (False, True):
            ways.append(("gradients inside", loop, lambda at=last: vmapped(op, fresh(), everything, at, slope)))
    for name, wanted, run in ways:
        try:
            want = wanted()
        except (RuntimeError, NotImplementedError):
            continue  # Not differentiable there, or results of several shapes.
        try:
            got = run()
        except RuntimeError as error:
            if is_refusal(error):
                continue
            raise
        if d := agree(op, got, want, name):
            return d
    return ""


def twice_looped(op: Op, fresh) -> list:
    """What `batched_twice` computes, by loops."""
    return [torch.stack(pair) for pair in zip(looped(op, fresh()), looped(op, fresh()[::-1]), strict=True)]
