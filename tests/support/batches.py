"""`vmap` over each op of the table: equal to a loop over the examples, by values, dtypes and shapes, and in gradients."""

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


def looped(op: Op, given) -> list:
    """Each result, stacked over the examples."""
    columns = zip(*(target.tensors(op.run(args, kwargs)) for args, kwargs in given), strict=True)
    return [torch.stack(list(c)) for c in columns]


def vmapped(op: Op, given, batched, last: bool):
    """The same by `vmap`, with the tensors of these numbers batched, in the last dimension if `last`."""
    lists = [target.tensors([args, list(kwargs.values())]) for args, kwargs in given]
    args, kwargs = given[0]
    place = -1 if last else 0
    tensors = [torch.stack([ts[i] for ts in lists], place) for i in batched]

    def one(*chosen):
        at, chosen = iter(range(len(lists[0]))), dict(zip(batched, chosen, strict=True))
        pick = lambda t: chosen.get(next(at), t)  # noqa: E731
        own = walk(list(args), pick)
        return target.tensors(op.run(own, walk(kwargs, pick)))

    return torch.vmap(one, in_dims=place, randomness="different")(*tensors)


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
        for text in ("dynamic shape", ".item()", "data-dependent", "is not possible because", "inplace randomness")
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
                return None if op.undefined else gradients(op, call, device, turns)
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
