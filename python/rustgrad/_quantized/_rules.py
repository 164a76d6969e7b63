"""The table of rules: what each op does with quantised tensors. An op without a rule is an error, never a guess."""

from __future__ import annotations

import functools

from .. import _conversions
from .._C import Tensor, ops
from .._rule_names import JOINS, MOVES, OPERATORS, answer, name_of, named, op_of, places
from . import _elementwise, _moves, _ops, _pooling
from ._tensor import refuse

# What a method of the tensor answers, also where it is asked as a function.
_ANSWERED = (
    "numel is_floating_point is_complex is_signed is_inference is_conj is_neg is_nonzero get_device is_same_size detach detach_ to "
    "cpu is_contiguous"
).split()
_COMPARISONS = "eq ne lt le gt ge".split()
_RULES = {
    "relu": _elementwise.relu,
    "nn.functional.relu": _elementwise.relu,
    "nn.functional.relu6": _elementwise.relu6,
    "nn.functional.hardtanh": _elementwise.hardtanh,
    "nn.functional.leaky_relu": _elementwise.leaky_relu,
    "threshold": _elementwise.threshold,
    "nn.functional.threshold": _elementwise.threshold,
    "nn.functional.gelu": _elementwise.gelu,
    "clamp": _elementwise.clamp,
    "clip": _elementwise.clamp,
    "equal": _elementwise.equal,
    "empty_like": _elementwise.empty_like,
    "zeros_like": _elementwise.full_like(0),
    "ones_like": _elementwise.full_like(1),
    "full_like": _elementwise.full_like_,
    "copy_": _moves.copy_,
    "fill_": _moves.fill_,
    "index_put": _moves.index_put,
    "index_put_": _moves.index_put_,
    "squeeze": _moves.squeeze,
    "unsqueeze": _moves.unsqueeze,
    "masked_fill": _moves.masked_fill,
    "masked_fill_": _moves.masked_fill_,
    "nn.functional.pad": _moves.pad,
    "nn.functional.interpolate": _pooling.interpolate,
}


def _zero_(self):
    return _moves.fill_(self, 0)


def _identity(self):
    """The tensor itself: there are no complex ones."""
    return self


def _same_size(self, other):
    return self.shape == other.shape


def _rules():
    """name -> rule of the ops that move no elements."""
    rules = dict(_RULES)
    for name in ("sigmoid", "hardsigmoid", "tanh"):
        rules[name] = rules[f"nn.functional.{name}"] = _elementwise.bounded(name)
    for name in ("relu", "hardtanh", "leaky_relu", "relu6", "threshold"):
        rules[f"{name}_"] = rules[f"nn.functional.{name}_"] = _elementwise.in_place(rules[f"nn.functional.{name}"])
    rules["clamp_"] = rules["clip_"] = _elementwise.in_place(_elementwise.clamp)
    for name in _COMPARISONS:
        rules[name] = _elementwise.comparison(ops[name])
    rules.update({name: rules[other] for name, other in OPERATORS.items() if other in _COMPARISONS})
    for name in ("sort", "topk", "max", "min", "amax", "amin"):
        rules[name] = _elementwise.ordered(ops[name])
    for name in ("mean", "std"):
        rules[name] = _elementwise.averaged(ops[name])
    rules.update({name: answer(name) for name in (*_ANSWERED, *_conversions.DTYPES)})
    rules.update(zero_=_zero_, resolve_conj=_identity, resolve_neg=_identity, conj=_identity, is_same_size=_same_size)
    return rules


def _moving():
    """(function, rule) of the ops that move elements, pool or resize."""
    more = (
        "clone contiguous repeat_interleave as_strided view_as_real nn.functional.pixel_shuffle nn.functional.pixel_unshuffle "
        "nn.functional.channel_shuffle channel_shuffle native_channel_shuffle unsafe_chunk tensor_split hsplit vsplit dsplit"
    ).split()
    for name in (*MOVES, *more):
        yield from ((f, _moves.move(f)) for f in places(name))
    for name in "unsqueeze_ squeeze_ transpose_ t_ swapaxes_ swapdims_ as_strided_".split():
        yield from ((f, _moves.move_(f)) for f in places(name))
    for name in JOINS:
        yield from ((f, _moves.join(f)) for f in places(name))
    for n in (1, 2, 3):
        for name, rule in (("avg_pool", _pooling.avg_pool), ("adaptive_avg_pool", _pooling.adaptive_avg_pool)):
            yield from ((f, rule(f, n)) for f in _everywhere(f"{name}{n}d"))
        for name in (f"max_pool{n}d", f"adaptive_max_pool{n}d"):
            yield from ((f, _pooling.maximum(f)) for f in _everywhere(name))


def _everywhere(name):
    """The functions of a name in the top namespace and in `nn.functional`."""
    return [*places(name), *places(f"nn.functional.{name}")]


@functools.cache
def table():
    """op -> rule. Ops are found by their objects, so a name means one op."""
    found = dict(_moving())
    for name, rule in _rules().items():
        found.update(dict.fromkeys(places(name), rule))
    found[Tensor.__setitem__] = _moves.put
    # Ops of `ops.quantized` take quantised tensors themselves.
    found.update({op: op for op in _own_ops()})
    return {op: named(rule) for op, rule in found.items()}


@functools.cache
def _own_ops():
    """The ops of `ops.quantized`, which write to `out` themselves."""
    return frozenset(_ops.table().values())


def call(function, args, kwargs):
    """The result of an op, of whose arguments one is quantised.

    Raises:
        NotImplementedError: there is no rule for it, or its result is to be written to `out`.
    """
    function = op_of(function)
    rule = table().get(function)
    name = name_of(function)
    if rule is None:
        refuse(name)
    if function not in _own_ops():
        if kwargs.get("out") is not None:
            refuse(f"{name}.out")
        kwargs.pop("out", None)
    return rule(*args, **kwargs)
