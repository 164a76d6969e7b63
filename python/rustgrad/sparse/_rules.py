"""The table of rules: what each op does with sparse tensors. An op without a rule is an error, never a guess.

A rule takes the arguments of its op with `self` first. What writes in place, and `out=`, are made of the same rules: the
result takes the place of the parts of the tensor that is written.
"""

from __future__ import annotations

import functools

from .. import _C, _functions
from .._C import Tensor, ops
from .._formats import sparse_coo
from .._rule_names import answer, swapped
from ..autograd.grad_mode import no_grad
from . import _elementwise, _lists, _masked, _products, _reduce, _shape
from ._tensor import CooTensor, SparseTensor, is_sparse, refuse

_RULES = {
    # elementwise
    "add": _elementwise.add,
    "sub": _elementwise.sub,
    "subtract": _elementwise.sub,
    "rsub": _elementwise.rsub,
    "mul": _elementwise.mul,
    "multiply": _elementwise.mul,
    "div": _elementwise.div,
    "divide": _elementwise.div,
    "true_divide": _elementwise.div,
    "floor_divide": _elementwise.floor_divide,
    "__floordiv__": _elementwise.floor_divide,
    "pow": _elementwise.power,
    "copy_": _elementwise.copy_,
    "zeros_like": _elementwise.zeros_like,
    "new_zeros": _elementwise.new_zeros,
    "new_empty": _elementwise.new_zeros,
    # shape
    "t": _shape.t,
    "transpose": _shape.transpose,
    "swapaxes": _shape.transpose,
    "swapdims": _shape.transpose,
    "permute": _shape.permute,
    "adjoint": _shape.adjoint,
    "movedim": _shape.movedim,
    "moveaxis": _shape.movedim,
    "squeeze": _shape.squeeze,
    "unsqueeze": _shape.unsqueeze,
    "select": _shape.select,
    "unbind": _shape.unbind,
    "narrow_copy": _shape.narrow_copy,
    "index_select": _shape.index_select,
    "__getitem__": _shape.getitem,
    "cat": _shape.cat,
    "concat": _shape.cat,
    "concatenate": _shape.cat,
    "stack": _shape.stack,
    "hstack": _shape.hstack,
    "vstack": _shape.vstack,
    "row_stack": _shape.vstack,
    # products
    "mm": _products.mm,
    "matmul": _products.matmul,
    "mv": _products.mv,
    "bmm": _products.bmm,
    "addmm": _products.addmm,
    "addmv": _products.addmv,
    "nn.functional.linear": _products.linear,
    # sums
    "sum": _reduce.sum,
    "norm": _reduce.norm,
    "linalg.norm": _reduce.vector_norm,
    "linalg.vector_norm": _reduce.vector_norm,
    "any": _reduce.any,
}
# The reflected operators, which get their operands in the other order.
_REFLECTED = {"__radd__": "add", "__rmul__": "mul", "__rsub__": "sub", "__rtruediv__": "div", "__rmatmul__": "matmul"}
# What a method of the tensor answers, also where it is asked as a function.
_ANSWERED = (
    "numel is_floating_point is_complex is_signed is_inference is_conj is_neg resolve_conj resolve_neg get_device detach_ "
    "is_nonzero is_same_size detach"
).split()
# Ops whose first argument may be dense, or a list.
_MIXED = set(
    "add sub subtract rsub mul multiply div divide true_divide floor_divide __floordiv__ pow copy_ __getitem__ cat concat "
    "concatenate stack hstack vstack row_stack mm matmul mv bmm addmm addmv nn.functional.linear".split()
)
# Ops of which a sparse tensor has no in-place form, though the table of ops has.
_NOT_IN_PLACE = {"squeeze", "unsqueeze", "swapaxes", "swapdims", "addmm", "addmv"}


def _add_(self, other, *, alpha=1):
    """A sum in place. Rows are added where they lie, whatever the dense tensor's size."""
    same = isinstance(other, CooTensor) and self.shape == other.shape and self.dtype == other.dtype
    if same and not is_sparse(self) and other.sparse_dim() == 1 and self.dtype != _C.bool:
        return self.index_add_(0, other._index[0], other._value, alpha=alpha)
    return written(self, _elementwise.add(self, other, alpha=alpha), "add_")


def _empty_like(self, *, memory_format=None, **kwargs):
    """Zeros, of the layout `sparse_coo`; of others the pattern of `self` with zeros."""
    if memory_format is not None:
        raise RuntimeError("empty_like: memory format option is only supported by strided tensors")
    layout = kwargs.get("layout") or self.layout
    if isinstance(self, CooTensor) or layout is not self.layout:
        return _elementwise.zeros_like(self, **kwargs)
    dtype, device = kwargs.get("dtype") or self.dtype, kwargs.get("device") or self.device
    made = self.detach().to(device, dtype, copy=True)
    made._value.zero_()
    return made.requires_grad_() if kwargs.get("requires_grad") else made


def _zero_(self):
    """Removes all elements."""
    return _elementwise.zeros_like(self)


def _checked_unary(name, linear):
    """The in-place form of a function that is not additive needs values that are added up."""
    rule = _elementwise.unary(name, linear)

    def in_place(self, *args, **kwargs):
        if not linear and isinstance(self, CooTensor) and not self._coalesced:
            raise RuntimeError(f"{name}_ requires coalesced input")
        return rule(self, *args, **kwargs)

    return in_place


@functools.cache
def table():
    """op -> (rule, whether it writes in place). Ops are found by their objects, so a name means one op."""
    rules: dict[str, tuple] = {}

    def put(name, rule, in_place=None):
        rules[name] = (rule, name.endswith("_") and name[-2:] != "__")
        written = f"{name}_"
        if name not in _NOT_IN_PLACE and (written in ops or hasattr(Tensor, written)):
            rules[written] = (in_place or rule, True)

    for name in (*_elementwise.LINEAR, *_elementwise.KEEPS_ZERO):
        if name in ops:
            linear = name in _elementwise.LINEAR
            put(name, _of_sparse(_elementwise.unary(name, linear), name), _checked_unary(name, linear))
    for name, rule in _RULES.items():
        put(name, rule if name in _MIXED else _of_sparse(rule, name))
    put("nn.functional.relu", _relu)
    rules["empty_like"] = (_empty_like, False)
    rules["zero_"] = (_zero_, True)
    rules["add_"] = (_add_, False)
    rules["_fused_sgd_"] = (_lists.fused_sgd, False)
    rules["_foreach_norm"] = (_lists.foreach_norm, False)
    rules["_foreach_mul_"] = (_lists.foreach_mul_, False)
    for name, other in _REFLECTED.items():
        rules[name] = (swapped(_RULES[other]), False)
    for name in [op for op in ops if op.startswith("masked.")]:
        rules[name] = (_masked.rule(name.removeprefix("masked.")), False)
    for name in _ANSWERED:
        rules[name] = (answer(name), False)
    return _by_object(rules)


def _of_sparse(rule, name):
    """A rule that is asked of sparse tensors alone: with a dense one, another argument is sparse, which no op takes."""

    def checked(self, *args, **kwargs):
        if not is_sparse(self):
            refuse(f"{name} with a sparse argument", sparse_coo)
        return rule(self, *args, **kwargs)

    return checked


def _by_object(rules):
    found = {}
    for name, rule in rules.items():
        for function in (ops.get(name), getattr(Tensor, name, None), getattr(_functions, name, None)):
            if function is not None:
                found[function] = rule
    return found


def _relu(input, inplace=False):
    made = _elementwise.unary("relu", False)(input)
    if inplace:
        return written(input, made, "relu_")
    return made


def call(function, args, kwargs):
    """The result of an op, of whose arguments one is sparse.

    Raises:
        NotImplementedError: there is no rule for it.
    """
    rule, in_place = table().get(function, (None, False))
    name = getattr(function, "__name__", str(function))
    name = name.strip("_") if name.endswith("__") else name
    if rule is None:
        refuse(name, _first(args, kwargs).layout)
    out = kwargs.pop("out", None) if "out" in kwargs else None
    if "input" in kwargs and not args:
        args = (kwargs.pop("input"),)
    for old in ("tensors", "self"):
        if old in kwargs and not args:
            args = (kwargs.pop(old),)
    result = rule(*args, **kwargs)
    if in_place:
        return written(args[0], result, name)
    if out is not None:
        return _put(out, result, name)
    if isinstance(result, SparseTensor) and result._made_by is None and result.requires_grad:
        result._made_by = "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward0"
    return result


def _first(args, kwargs):
    """The first sparse argument, also in a list."""
    for value in (*args, *kwargs.values()):
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if is_sparse(one):
                return one
    raise TypeError("expected a sparse tensor among the arguments")


def written(self, result, name):
    """Writes a result in place of a tensor, which is returned."""
    if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
        raise RuntimeError(f"{name}: a leaf Variable that requires grad is being used in an in-place operation.")
    if not is_sparse(self):
        if (
            self.dtype.is_floating_point < result.dtype.is_floating_point
            or self.dtype.is_complex < result.dtype.is_complex
        ):
            raise RuntimeError(
                f"{name}: result type {result.dtype._scalar_type_name} can't be cast to the desired output type "
                f"{self.dtype._scalar_type_name}"
            )
        return self.copy_(result.to_dense() if is_sparse(result) else result)
    if not is_sparse(result) or result.layout is not self.layout and name not in ("t_", "transpose_"):
        refuse(name, self.layout)
    if result.dtype != self.dtype:
        if not _C.can_cast(result.dtype, self.dtype):
            raise RuntimeError(
                f"{name}: result type {result.dtype._scalar_type_name} can't be cast to the desired output type "
                f"{self.dtype._scalar_type_name}"
            )
        result = result.to(self.dtype)
    kept = all(a is b for a, b in zip(self._pattern(), result._pattern(), strict=True))
    recorded = _C.is_grad_enabled() and (self.requires_grad or result.requires_grad)
    if kept and not recorded and self._value.shape == result._value.shape:
        # Who shares the values sees them change, as in PyTorch; a leaf keeps its gradient.
        with no_grad():
            self._value.copy_(result._value)
        return self
    leaf = self.requires_grad and self.is_leaf
    self._set(result)
    if leaf and not result.requires_grad:
        self._value = self._value.detach().requires_grad_()
    return self


def _put(out, result, name):
    """Writes a result to `out`."""
    if result.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation.")
    if is_sparse(out) is not is_sparse(result) or out.layout is not result.layout:
        raise RuntimeError(f"{name}: expected out of layout {result.layout._name}, got {out.layout._name}")
    if not is_sparse(out):
        return out.resize_(result.shape).copy_(result)
    if not _C.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"{name}: result type {result.dtype} can't be cast to the desired output type {out.dtype}")
    out._set(result.to(out.dtype))
    return out
