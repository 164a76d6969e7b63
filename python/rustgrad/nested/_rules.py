"""The table of rules: what each op does with nested tensors. An op without a rule is an error, never a guess.

There is one table for each layout; a rule takes the arguments of its op. What the layouts have in common is elementwise.
"""

from __future__ import annotations

import functools

from .. import _conversions, _formats
from .._rule_names import OPERATORS, REFLECTED, answer, name_of, named, op_of, places, swapped
from . import _elementwise, _products, _reduce, _shape, _strided
from ._tensor import is_nested, is_same_size, refuse

_JAGGED = {
    # dimensions
    "transpose": _shape.transpose,
    "swapaxes": _shape.transpose,
    "swapdims": _shape.transpose,
    "permute": _shape.permute,
    "unsqueeze": _shape.unsqueeze,
    "squeeze": _shape.squeeze,
    "view": _shape.view,
    "reshape": _shape.reshape,
    "flatten": _shape.flatten,
    "unflatten": _shape.unflatten,
    "expand": _shape.expand,
    "expand_as": _shape.expand_as,
    "view_as": _shape.view_as,
    "reshape_as": _shape.reshape_as,
    # parts
    "select": _shape.select,
    "narrow": _shape.narrow,
    "split": _shape.split,
    "split_with_sizes": _shape.split,
    "chunk": _shape.chunk,
    "__getitem__": _shape.getitem,
    "cat": _shape.cat,
    "concat": _shape.cat,
    "concatenate": _shape.cat,
    "stack": _shape.stack,
    "contiguous": _shape.contiguous,
    "clone": _shape.clone,
    "nn.functional.embedding": _products.embedding,
    "nn.functional.embedding_bag": _products.embedding_bag,
    "nn.functional.layer_norm": _reduce.layer_norm,
    "nn.functional.rms_norm": _reduce.rms_norm,
    "rms_norm": _reduce.rms_norm,
    # products
    "nn.functional.linear": _products.linear,
    "matmul": _products.matmul,
    "__matmul__": _products.matmul,
    "__rmatmul__": _products.rmatmul,
    "bmm": _products.bmm,
    "mm": _products.mm,
    "nn.functional.scaled_dot_product_attention": _products.attention,
    **{name: _products.loss(name) for name in ("nn.functional.mse_loss", "nn.functional.l1_loss")},
    # reductions
    **{name: _reduce.reduction(name, fill) for name, fill in _reduce.REDUCTIONS.items()},
    "max": _reduce.extremum("max"),
    "min": _reduce.extremum("min"),
    **{name: _reduce.softmax(name) for name in ("softmax", "log_softmax")},
    **{f"nn.functional.{name}": _reduce.softmax(f"nn.functional.{name}") for name in ("softmax", "log_softmax")},
}
_STRIDED = {
    "transpose": _strided.transpose,
    "swapaxes": _strided.transpose,
    "permute": _strided.permute,
    "unsqueeze": _strided.along("unsqueeze"),
    "squeeze": _strided.along("squeeze"),
    "view": _strided.reshape,
    "reshape": _strided.reshape,
    "select": _strided.select,
    "narrow": _strided.narrow,
    "split": _strided.split,
    "split_with_sizes": _strided.split,
    "chunk": _strided.chunk,
    "__getitem__": _strided.getitem,
    "cat": _strided.cat,
    "contiguous": _strided.contiguous,
    "clone": _strided.clone,
    "nn.functional.embedding": _strided.embedding,
    "nn.functional.layer_norm": _strided.layer_norm,
    "nn.functional.linear": _strided.linear,
    "matmul": _strided.matmul,
    "__matmul__": _strided.matmul,
    "__rmatmul__": lambda self, other: _strided.matmul(other, self),
    "bmm": _strided.bmm,
    "nn.functional.scaled_dot_product_attention": _strided.attention,
    "sum": _strided.sum_,
    **{name: _strided.softmax(name) for name in ("softmax", "log_softmax")},
    **{f"nn.functional.{name}": _strided.softmax(f"nn.functional.{name}") for name in ("softmax", "log_softmax")},
}
# What a method of the tensor answers, also where it is asked as a function.
_ANSWERED = (
    "numel is_floating_point is_complex is_signed is_inference is_conj is_neg is_nonzero get_device detach detach_ to cpu"
).split()


def _resolved(self):
    """The tensor itself: conjugates are computed at once."""
    return self


def _equal(self, other):
    """Whether both are nested in the same way and have equal elements."""
    both = is_nested(self) and is_nested(other) and self._same(other)
    return both and _shape.elements(self).equal(_shape.elements(other))


def _in_place(op):
    """The rule of an elementwise op that writes on its first argument."""
    return lambda *args, **kwargs: _elementwise.written(op, args, kwargs)


def _named(rule):
    """A rule that takes its first argument by any of its names, and dimensions by NumPy's."""
    rule = named(rule)

    def called(*args, **kwargs):
        for old, new in (("axis", "dim"), ("keepdims", "keepdim")):
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
        return rule(*args, **kwargs)

    return called


def _common():
    """The rules of both layouts that are not elementwise ops themselves, by name."""
    rules = {name: _elementwise.pointwise(other) for name, other in OPERATORS.items()}
    rules.update({name: swapped(_elementwise.pointwise(other)) for name, other in REFLECTED.items()})
    rules.update({name: answer(name) for name in (*_ANSWERED, *_conversions.DTYPES)})
    rules["copy_"] = _elementwise.copy_
    rules["unbind"] = _shape.unbind
    rules["equal"] = _equal
    rules["is_same_size"] = is_same_size
    rules["resolve_conj"] = rules["resolve_neg"] = _resolved
    return rules


@functools.cache
def table(layout):
    """op -> rule. Ops are found by their objects, so a name means one op."""
    found = {}
    for name in (*_elementwise.NAMES, *_elementwise.LIKE):
        found.update({function: _elementwise.pointwise(name, function) for function in places(name)})
    for name in (*_elementwise.WRITTEN, *(f"{name}_" for name in _elementwise.NAMES)):
        found.update({function: _in_place(function) for function in places(name)})
    rules = {**_common(), **(_JAGGED if layout is _formats.jagged else _STRIDED)}
    for name, rule in rules.items():
        found.update(dict.fromkeys(places(name), _named(rule)))
    return found


def call(function, args, kwargs):
    """The result of an op, of whose arguments one is nested.

    Raises:
        NotImplementedError: there is no rule for it.
    """
    layout = _layout_of(args, kwargs)
    function = op_of(function)
    rule = table(layout).get(function)
    name = name_of(function)
    if rule is None:
        refuse(name, layout)
    if kwargs.get("out") is not None:
        refuse(f"{name} with out=", layout)
    kwargs.pop("out", None)
    return rule(*args, **kwargs)


def _layout_of(args, kwargs):
    """The layout of the nested arguments, also of those in a list. RuntimeError: there are both."""
    found = None
    for value in (*args, *kwargs.values()):
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if is_nested(one):
                if found not in (None, one.layout):
                    raise RuntimeError("expected nested tensors of one layout, got torch.jagged and torch.strided")
                found = one.layout
    return found
