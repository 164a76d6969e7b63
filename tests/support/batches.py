"""`vmap` over each op of the table: equal to a loop over the examples, by values, dtypes and shapes, and in gradients."""

import warnings

import numpy as np

from support import target
from support.checking import each
from support.optable import Op
from support.samples import TensorSpec
from support.target import torch

SIZE = 3


def maker(example: int, turn_integers: bool):
    """Makes the tensors of one example: the elements of the sample in another order, so that their kind is kept."""

    def make(spec: TensorSpec, device: str):
        array = spec.array()
        if array.size > 1 and example and (spec.differentiable or turn_integers):
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


def examples(op: Op, call, device: str, turn_integers: bool):
    """(args, kwargs) of each example."""
    built = [target.build(call, device, maker=maker(i, turn_integers))[:2] for i in range(SIZE)]
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

    return torch.vmap(one, in_dims=place, randomness="different" if op.undefined else "error")(*tensors)


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
        count = len(target.tensors(list(target.build(call, device)[:2][0])) + target.tensors(list(call_kwargs(call))))
        if not count:
            return None
        for turn in (True, False):
            for batched, last in variants(count):
                fresh = lambda t=turn: choose(examples(op, call, device, t), batched)  # noqa: B023, E731
                try:
                    want = looped(op, fresh())
                except (RuntimeError, IndexError, ValueError, NotImplementedError):
                    if turn:
                        break  # Other indices are out of range.
                    raise
                try:
                    got = vmapped(op, fresh(), batched, last)
                except RuntimeError as error:
                    if is_refusal(error):
                        continue
                    raise
                if d := agree(op, got, want, f"tensors {batched}{' in the last dimension' if last else ''}"):
                    return d
            else:
                return None if op.undefined else gradients(op, call, device, turn)
        return None

    def call_kwargs(call):
        return target.build(call, device)[1].values()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return each(op, check, name="vmap")


def gradients(op: Op, call, device: str, turn: bool) -> str:
    """Gradients through the batch are those of the examples."""
    if not op.differentiable or op.only_inplace:
        return ""

    def leaves():
        given = examples(op, call, device, turn)
        for args, kwargs in given:
            for t in target.tensors([args, list(kwargs.values())]):
                if t.is_floating_point() or t.is_complex():
                    t.requires_grad_()
        return given

    def differentiate(run):
        given = leaves()
        outputs = [o for o in run(given) if o.requires_grad]
        inputs = [t for args, kwargs in given for t in target.tensors([args, list(kwargs.values())]) if t.requires_grad]
        return target.gradients(outputs, inputs)

    try:
        want = differentiate(lambda given: looped(op, given))
    except (RuntimeError, NotImplementedError):
        return ""  # Not differentiable there.
    count = len(target.tensors([given_args for given_args in examples(op, call, device, turn)[0][0]])) + len(
        target.tensors(list(examples(op, call, device, turn)[0][1].values()))
    )
    try:
        got = differentiate(lambda given: vmapped(op, given, tuple(range(count)), False))
    except RuntimeError as error:
        if is_refusal(error):
            return ""
        raise
    return agree(op, got, want, "gradients")
