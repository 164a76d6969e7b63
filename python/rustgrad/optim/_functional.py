"""The update rules as functions of lists of tensors: `adam(params, grads, exp_avgs, ...)`, with PyTorch's arguments.

They change the tensors in place, by the rules of the classes. Libraries call them from optimizers of their own, under these
names and as `_single_tensor_adam` and so on; the modules of the classes have them too. One table says how the arguments of
each become the options and states of its class.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, NamedTuple

from .._base import Tensor, is_grad_enabled
from ..autograd import _engine
from .optimizer import _require_fused

__all__: list[str] = []

# Options that are pairs, and the arguments that they are made of.
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
    "eps": ("eps1", "eps2"),
}


class _Rule(NamedTuple):
    """A function's class, the entry of the states behind each list that it takes, its optional arguments and its options."""

    path: str
    lists: dict[str, str]
    optional: str
    options: str
    fixed: dict[str, Any] = {}
    grads: str = "grads"


_STEPS = {"state_steps": "step"}
_MOMENTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq"}
_ADAM = {**_MOMENTS, "max_exp_avg_sqs": "max_exp_avg_sq", **_STEPS}
_SCALED = "grad_scale=None found_inf=None"
_AMSGRAD = f"foreach=None capturable=False differentiable=False fused=None {_SCALED} has_complex=False"
_PLAIN = "foreach=None maximize=False differentiable=False capturable=False has_complex=False"
_BETAS = "beta1 beta2 lr weight_decay"
_ADAM_OPTIONS = f"amsgrad {_BETAS} eps maximize"
_RULES = {
    "adadelta": _Rule(
        "adadelta.Adadelta",
        {"square_avgs": "square_avg", "acc_deltas": "acc_delta", **_STEPS},
        "capturable=False foreach=None differentiable=False has_complex=False",
        "lr rho eps weight_decay maximize",
    ),
    "adafactor": _Rule(
        "_adafactor.Adafactor",
        {"row_vars": "row_var", "col_vars": "col_var", "variances": "variance", **_STEPS},
        f"foreach=None {_SCALED} has_complex=False",
        "d lr beta2_decay weight_decay eps1 eps2 maximize",
    ),
    "adagrad": _Rule(
        "adagrad.Adagrad",
        {"state_sums": "sum", **_STEPS},
        f"fused=None {_SCALED} has_sparse_grad=False foreach=None differentiable=False has_complex=False",
        "lr weight_decay lr_decay eps maximize",
    ),
    "adam": _Rule("adam.Adam", _ADAM, f"{_AMSGRAD} decoupled_weight_decay=False", _ADAM_OPTIONS),
    "adamax": _Rule(
        "adamax.Adamax",
        {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", **_STEPS},
        _PLAIN,
        "eps beta1 beta2 lr weight_decay",
    ),
    "adamw": _Rule("adamw.AdamW", _ADAM, _AMSGRAD, _ADAM_OPTIONS, {"decoupled_weight_decay": True}),
    "asgd": _Rule(
        "asgd.ASGD",
        {"axs": "ax", "mus": "mu", "etas": "eta", **_STEPS},
        _PLAIN,
        "lambd lr t0 alpha weight_decay",
    ),
    "muon": _Rule(
        "_muon.Muon",
        {"muon_momentum_bufs": "momentum_buffer"},
        "",
        "foreach=None lr weight_decay momentum nesterov ns_coefficients ns_steps eps adjust_lr_fn has_complex",
    ),
    "nadam": _Rule(
        "nadam.NAdam",
        {**_MOMENTS, "mu_products": "mu_product", **_STEPS},
        "decoupled_weight_decay=False foreach=None capturable=False differentiable=False has_complex=False maximize=False",
        f"{_BETAS} momentum_decay eps",
    ),
    "radam": _Rule(
        "radam.RAdam",
        {**_MOMENTS, **_STEPS},
        "decoupled_weight_decay=False foreach=None differentiable=False capturable=False has_complex=False maximize=False",
        f"{_BETAS} eps",
    ),
    "rmsprop": _Rule(
        "rmsprop.RMSprop",
        {"square_avgs": "square_avg", "grad_avgs": "grad_avg", "momentum_buffer_list": "momentum_buffer", **_STEPS},
        _PLAIN,
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": _Rule(
        "rprop.Rprop",
        {"prevs": "prev", "step_sizes": "step_size", **_STEPS},
        "foreach=None capturable=False maximize=False differentiable=False has_complex=False",
        "step_size_min step_size_max etaminus etaplus",
    ),
    "sgd": _Rule(
        "sgd.SGD",
        {"momentum_buffer_list": "momentum_buffer"},
        f"has_sparse_grad=False foreach=None fused=None {_SCALED}",
        "weight_decay momentum lr dampening nesterov maximize",
        grads="d_p_list",
    ),
    "sparse_adam": _Rule("sparse_adam.SparseAdam", {**_MOMENTS, **_STEPS}, "", "eps beta1 beta2 lr maximize"),
}
# Those that PyTorch has fused forms of, and those without a form for many tensors.
_WITH_FUSED, _WITHOUT_FOREACH = ("adagrad", "adam", "sgd"), ("muon", "sparse_adam")
_CONSTANTS = {"None": None, "False": False}


def _parameter(text: str, kind: Any) -> inspect.Parameter:
    name, _, default = text.partition("=")
    return inspect.Parameter(name, kind, default=_CONSTANTS[default] if default else inspect.Parameter.empty)


def _signature(rule: _Rule, whole: bool) -> inspect.Signature:
    """The arguments of `adam`, or of `_single_tensor_adam` if not `whole`, which has no defaults."""
    positional, options = ["params", rule.grads if whole else "grads", *rule.lists], rule.options.split()
    if whole:
        positional += rule.optional.split()
    else:
        names = [text.partition("=")[0] for text in rule.optional.split()]
        positional += [name for name in names if name in ("grad_scale", "found_inf")]
        options += [name for name in names if name not in ("foreach", "fused", "grad_scale", "found_inf")]
        options = [text for text in options if text != "foreach=None"]
    return inspect.Signature(
        [_parameter(text, inspect.Parameter.POSITIONAL_OR_KEYWORD) for text in positional]
        + [_parameter(text, inspect.Parameter.KEYWORD_ONLY) for text in options]
    )


def _check_steps(steps: Any) -> None:
    if steps is not None and not all(isinstance(step, Tensor) for step in steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


def _overflowed(grads: list[Tensor], given: dict[str, Any]) -> bool:
    """Divides the gradients by `grad_scale`; True where `found_inf` says that the step is left out."""
    scale, found_inf = given.get("grad_scale"), given.get("found_inf")
    if scale is None and found_inf is None:
        return False
    if not given["fused"]:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if found_inf is not None and found_inf.item():
        return True
    if scale is not None:
        for grad in grads:
            grad.div_(scale)
    return False


def _group(given: dict[str, Any]) -> dict[str, Any]:
    """The options as a group of the class has them."""
    group = {"weight_decay": 0, "differentiable": False, "maximize": False, **given}
    pairs = {name: parts for name, parts in _PAIRS.items() if parts[0] in given}
    return group | {name: tuple(given[part] for part in parts) for name, parts in pairs.items()}


def _update(rule: Any, group: dict[str, Any], params: Any, grads: Any, states: Any) -> None:
    """One step of an optimizer without parameters of its own, as `Optimizer._step_group` takes it."""
    sparse = _engine.sparse and any(_engine.is_sparse(grad) for grad in grads)
    if not sparse and not is_grad_enabled() and len({*params}) == len(params):
        options = rule._options_of_fused(group)
        if options is not None:
            rule._update_fused(group, options, params, grads, states)
            return
    for param, grad, state in zip(params, grads, states, strict=True):
        update = rule._update_by_sparse if _engine.is_sparse(grad) else rule._update
        update(group, param, grad, state)


def _step(name: str, given: dict[str, Any]) -> None:
    """One step by the arguments of a function."""
    rule = _RULES[name]
    file, _, cls = rule.path.partition(".")
    optimizer = getattr(importlib.import_module(f"{__package__}.{file}"), cls)
    optimizer = optimizer.__new__(optimizer)
    params, grads = given.pop("params"), given.pop(rule.grads if rule.grads in given else "grads")
    lists = {entry: given.pop(argument) for argument, entry in rule.lists.items()}
    if name != "sparse_adam":
        _check_steps(lists.get("step"))
    if not params or _overflowed(grads, given):
        return
    if given.get("fused"):
        _require_fused(params)
    states = [
        {entry: values[i] for entry, values in lists.items() if values and values[i] is not None}
        for i in range(len(params))
    ]
    if name == "sparse_adam":
        # Its steps are numbers, which callers have counted already.
        for state in states:
            state["step"] -= 1
    _update(optimizer, _group(rule.fixed | given), params, grads, states)
    if name == "sgd" and given["momentum"]:
        lists["momentum_buffer"][:] = [state["momentum_buffer"] for state in states]


def _define(name: str, whole: str, **fixed: Any) -> None:
    """Makes the form `name` of the function `whole`."""
    signature = _signature(_RULES[whole], name == whole)

    def function(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        _step(whole, bound.arguments | fixed)

    file, _, cls = _RULES[whole].path.partition(".")
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"{__package__}.{file}"
    function.__doc__ = f"One step of `{cls}`: changes the parameters and the states that it is given in place."
    function.__signature__ = signature  # type: ignore[attr-defined]
    globals()[name] = function


for _name in _RULES:
    _define(_name, _name)
    if _name not in ("adamw", "sparse_adam"):
        _define(f"_single_tensor_{_name}", _name, foreach=False, fused=False)
    if _name not in ("adamw", *_WITHOUT_FOREACH):
        _define(f"_multi_tensor_{_name}", _name, foreach=True, fused=None)
    if _name in _WITH_FUSED:
        _define(f"_fused_{_name}", _name, foreach=None, fused=True)


def __dir__() -> list[str]:
    return [*__all__, *_RULES]
