"""The table of rules: what each op does with masked tensors. An op without a rule is an error, never a guess."""

from __future__ import annotations

import functools

from ... import _conversions, _formats
from ..._C import Tensor, ops
from ..._rule_names import JOINS, MOVES, OPERATORS, REFLECTED, answer, name_of, named, op_of, places, swapped
from .. import _ops as _functions
from . import binary, passthrough, reductions, unary
from ._gradients import Call, data_of, write
from .core import is_masked_tensor, made, refuse

# What a method of the tensor answers, also where it is asked as a function.
_ANSWERED = (
    "numel is_floating_point is_complex is_signed is_inference is_conj is_neg is_nonzero get_device is_same_size detach to cpu "
    "contiguous is_contiguous to_dense to_sparse to_sparse_csr"
).split()
_LIKE = "empty_like zeros_like ones_like full_like rand_like randn_like randint_like".split()


def _where(condition, input=None, other=None):
    """Data and mask of the one or the other; an operand that has no mask is let through everywhere."""
    if input is None or other is None:
        raise ValueError("where: expected 3 arguments, got 1: positions of masked tensors are not defined")
    if is_masked_tensor(condition):
        raise TypeError("where: the condition must be a Tensor without a mask. Hint: see .get_data()")
    parts = [a for a in (input, other) if is_masked_tensor(a)]
    if any(a.layout is not _formats.strided for a in parts):
        refuse("where", " of sparse data")
    masks = [
        a._mask if is_masked_tensor(a) else ops["ones_like"](condition, dtype=parts[0]._mask.dtype)
        for a in (input, other)
    ]
    mask = ops["where"](condition, *masks)
    call = Call()
    chosen = (lambda seen: seen & condition), (lambda seen: seen & ~condition)
    data = [_chosen(call, a, mask, place) for a, place in zip((input, other), chosen, strict=True)]
    return call.give(ops["where"](condition, *data), mask)


def _chosen(call, a, mask, adjoint):
    if is_masked_tensor(a):
        return call.take(a, adjoint)
    return call.enter(a, mask, adjoint) if isinstance(a, Tensor) else a


def _where_of(self, condition, other):
    return _where(condition, self, other)


def _like(name):
    def rule(self, *args, **kwargs):
        if self.layout is not _formats.strided:
            from ._parts import values, with_values

            kwargs.pop("memory_format", None)
            return made(with_values(self._value, ops[name](values(self._value), *args, **kwargs)), self._mask.clone())
        return made(ops[name](self._value, *args, **kwargs), self._mask.clone())

    return rule


def _clone(self, *, memory_format=None):
    """A copy of data and mask."""
    if self.layout is not _formats.strided:
        return made(self._value.clone(), self._mask.clone())
    options = {} if memory_format is None else {"memory_format": memory_format}
    call = Call()
    return call.give(call.take(self).clone(**options), self._mask.clone(**options))


def _copy_(self, src, non_blocking=False):
    """The elements of another tensor; the mask stays. TypeError: a dense tensor is to be written."""
    if not is_masked_tensor(self):
        raise TypeError("copy_: a dense tensor is not written from a masked one. Hint: see .to_tensor(value)")
    return write(self, Tensor.copy_, Call(), data_of(src) if is_masked_tensor(src) else src)


def _detach_(self):
    self._set(self.detach())
    return self


def _extremum(name, other):
    """`max` or `min` of two tensors; of one alone they have no rule."""

    def rule(*args, **kwargs):
        if len(args) < 2 or not all(isinstance(a, Tensor) for a in args[:2]):
            refuse(name)
        return binary.binary(ops[other], other)(*args, **kwargs)

    return rule


def _sum_to_size(self, *size):
    """The sum over the dimensions of which `size` has one element only."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = self.dim() - len(size)
    dims = [i for i, n in enumerate(self.shape) if i < extra or (size[i - extra] == 1 and n != 1)]
    found = reductions.reduction("sum")(self, dims, keepdim=True) if dims else self
    return passthrough.move(ops["reshape"])(found, size)


def _resolved(self):
    """The tensor itself: there are no complex ones."""
    return self


def _pointwise():
    """(function, rule) of the elementwise ops, by all functions of a name."""
    for name in (*unary.UNARY_NAMES, *unary.MORE):
        yield from ((f, unary.unary(f)) for f in places(name) if name != "pow")
    for op in unary.NATIVE_INPLACE_UNARY_FNS:
        yield from ((f, unary.written(f)) for f in {*places(op.__name__), op_of(op)})
    for name in (*binary.BINARY_NAMES, *binary.MORE):
        yield from ((f, binary.binary(f, name)) for f in places(name))
    for name in binary.INPLACE_BINARY_NAMES:
        yield from ((f, binary.written(f, name)) for f in places(name))


def _moves():
    """(function, rule) of the ops that move elements."""
    for names, kind in ((MOVES, passthrough.move), (JOINS, passthrough.join)):
        for name in names:
            yield from ((f, kind(f)) for f in places(name))
    for name in passthrough.FOLDS:
        yield from ((f, passthrough.fold(f)) for f in places(name))


def _others():
    """name -> rule of all other ops."""
    rules = {name: reductions.reduction(name) for name in (*reductions.REDUCE_NAMES, "any")}
    for name in ("softmax", "log_softmax", "softmin"):
        rules[f"nn.functional.{name}"] = reductions.softmax(name, getattr(_functions, name))
    rules.update({name: rules[f"nn.functional.{name}"] for name in ("softmax", "log_softmax")})
    rules.update({name: answer(name) for name in (*_ANSWERED, *_conversions.DTYPES)})
    rules.update({name: _like(name) for name in _LIKE})
    rules.update({f"masked.{name}": reductions.functional(name) for name in _functions.__all__ if name != "logaddexp"})
    rules.update(max=_extremum("max", "maximum"), min=_extremum("min", "minimum"))
    rules.update(resolve_conj=_resolved, resolve_neg=_resolved, conj=_resolved)
    rules.update(clone=_clone, copy_=_copy_, detach_=_detach_, sum_to_size=_sum_to_size)
    return rules


@functools.cache
def table():
    """op -> rule. Ops are found by their objects, so a name means one op."""
    found = dict(_pointwise())
    found.update(_moves())
    pointwise = {name: found[ops[name]] for name in {*OPERATORS.values(), *REFLECTED.values()}}
    rules = _others()
    rules.update({name: pointwise[other] for name, other in OPERATORS.items()})
    rules.update({name: swapped(pointwise[other]) for name, other in REFLECTED.items()})
    for name, rule in rules.items():
        found.update(dict.fromkeys(places(name), rule))
    found.update(dict.fromkeys(places("where"), _where))
    found[Tensor.where] = _where_of
    return {op: named(rule) for op, rule in found.items()}


def call(function, args, kwargs):
    """The result of an op, of whose arguments one is masked.

    Raises:
        TypeError: there is no rule for it, or its result is to be written to `out`.
    """
    function = op_of(function)
    rule = table().get(function)
    name = name_of(function)
    if rule is None:
        refuse(name)
    if kwargs.get("out") is not None:
        refuse(name, " with out=")
    kwargs.pop("out", None)
    return rule(*args, **kwargs)
