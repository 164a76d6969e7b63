"""`aot_function` and its kin: a function of tensors as two graphs, of its results and of its gradients, that a program compiles.

What is compiled is called in the place of the function; its arguments have the forms of those that it was traced with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._absent import getattr_of
from .._base import Tensor, is_grad_enabled
from .._subclasses.fake_tensor import FakeTensorMode
from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..func import functional_call
from ..nn.modules.module import Module
from ..utils import _pytree

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func"]


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of the arguments of `f`."""

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose results are called with a list of their arguments."""

    @functools.wraps(compiler)
    def boxed(graph: Any, inputs: Any) -> Any:
        return make_boxed_func(compiler(graph, inputs))

    return boxed


def _call(function: Any, args: list[Any]) -> list[Any]:
    found = function(list(args)) if getattr(function, "_boxed_call", False) else function(*args)
    return list(found) if isinstance(found, (list, tuple)) else [found]


class _Compiled:
    """A function of tensors that was compiled for arguments of some forms.

    Args:
        function (callable): takes the tensors, and returns any tree.
        args: the first arguments.
        settings (dict): the compilers and decompositions.
    """

    def __init__(self, function: Any, args: list[Any], settings: dict[str, Any]) -> None:
        from . import _graphs

        mode = FakeTensorMode()
        fakes = [
            mode.from_tensor(a.detach()).requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args
        ]

        def flat(*given: Any) -> list[Any]:
            leaves, self.spec = _pytree.tree_flatten(function(*given))
            return leaves

        # A run beforehand says which results there are: those that are differentiated have tangents.
        with mode:
            trial = [_trial(f, a) for f, a in zip(fakes, args)]
            before = [t._version if isinstance(t, Tensor) else 0 for t in trial]
            outs = flat(*trial)
        for t, f, version in zip(trial, fakes, before):
            if isinstance(t, Tensor) and f.requires_grad and t._version != version:
                raise NotImplementedError(
                    "aot_function: a function that writes to an argument which requires grad is not compiled; expected it to write "
                    "to others. Hint: clone the argument first"
                )
        self.same = [next((i for i, t in enumerate(trial) if o is t), None) for o in outs]
        self.wants = [isinstance(o, Tensor) and o.requires_grad and same is None for o, same in zip(outs, self.same)]
        self.trains = is_grad_enabled() and any(self.wants)
        table = settings["decompositions"]
        if not self.trains:
            plain = [f.detach() if isinstance(f, Tensor) else f for f in fakes]
            traced = _graphs.plain(flat, plain, len(outs), table)
            inputs = [n for n in traced.graph.nodes if n.op == "placeholder"]
            first = _graphs.module_of(traced, inputs, traced.values)
            self.first = settings["inference_compiler"](first, fakes)
            self.changed = traced.changed
        else:
            self._train(fakes, outs, flat, settings)

    def _train(self, fakes: list[Any], outs: list[Any], flat: Any, settings: dict[str, Any]) -> None:
        from . import _graphs

        with _mode_of(fakes):
            tangents = [o.detach().clone() for o, want in zip(outs, self.wants) if want]

        def differentiated(*given: Any) -> list[Any]:
            # Results that are arguments have no gradient of the graph's.
            return [o.detach() if same is not None else o for o, same in zip(flat(*given), self.same)]

        traced = _graphs.joint(differentiated, fakes, tangents, len(outs), settings["decompositions"])
        self.changed = traced.changed
        first, second, saved = _graphs.divided(traced, len(fakes))
        self.first = settings["fw_compiler"](first, fakes)
        self.saved, self._second, self._compiler = saved, second, settings["bw_compiler"]

    @functools.cached_property
    def second(self) -> Any:
        """What computes the gradients, compiled when they are asked for."""
        inputs = [n.meta.get("val") for n in self._second.graph.nodes if n.op == "placeholder"]
        return self._compiler(self._second, inputs)

    def __call__(self, args: list[Any]) -> Any:
        if self.trains:
            found = list(_Run.apply(self, *args))
        else:
            with no_grad():
                found = _call(self.first, [a.detach() if isinstance(a, Tensor) else a for a in args])
        for place, value in zip(self.changed, found):
            with no_grad():
                args[place].copy_(value)
        outs = [o if same is None else args[same] for o, same in zip(found[len(self.changed) :], self.same)]
        return _pytree.tree_unflatten(outs, self.spec)


def _trial(fake: Any, given: Any) -> Any:
    """An argument of a run beforehand: a leaf where the argument is one."""
    if not isinstance(fake, Tensor):
        return fake
    made = fake.detach().clone().requires_grad_(fake.requires_grad)
    return made if given.is_leaf else made.clone()


def _mode_of(fakes: list[Any]) -> Any:
    """The mode of fake tensors."""
    return next(f.fake_mode for f in fakes if isinstance(f, Tensor))


class _Run(Function):
    """A call of both graphs."""

    _node_name = "CompiledFunctionBackward"

    @staticmethod
    def forward(ctx: Any, compiled: _Compiled, *args: Any) -> Any:
        ctx.compiled = compiled
        ctx.set_materialize_grads(True)
        found = _call(compiled.first, [a.detach() if isinstance(a, Tensor) else a for a in args])
        count = len(found) - compiled.saved
        outs, saved = found[:count], found[count:]
        tensors = [v for v in saved if isinstance(v, Tensor)]
        ctx.numbers = [None if isinstance(v, Tensor) else v for v in saved]
        ctx.save_for_backward(*tensors)
        wants = [False] * len(compiled.changed) + compiled.wants
        ctx.mark_non_differentiable(*(o for o, want in zip(outs, wants) if isinstance(o, Tensor) and not want))
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        compiled, kept = ctx.compiled, iter(ctx.saved_tensors)
        saved = [next(kept) if v is None else v for v in ctx.numbers]
        wants = [False] * len(compiled.changed) + compiled.wants
        tangents = [g for g, want in zip(grads, wants) if want]
        return (None, *_call(compiled.second, [*saved, *tangents]))


def _form(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return tuple(value.shape), value.dtype, value.stride(), value.device, value.requires_grad


def _refuse(partition_fn: Any) -> None:
    from .partitioners import default_partition

    if partition_fn is not None and partition_fn is not default_partition:
        raise NotImplementedError(
            f"aot_function: the joint graph is divided by default_partition; got partition_fn={partition_fn!r}"
        )


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] | None = None,
    decompositions: dict[Any, Callable[..., Any]] | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable[..., Any] | None = None,
    *,
    dynamic: bool = False,
    enable_log: bool = True,
    disable_functionalization: bool = False,
) -> Callable[..., Any]:
    """`fn` as graphs that are compiled: one of its results, and one of its gradients where they are wanted.

    Args:
        fn (callable): takes and returns trees of tensors.
        fw_compiler, bw_compiler, inference_compiler (callable): `compiler(graph_module, example_inputs)` returns what is called with
            the graph's inputs, or with a list of them if it says so (`make_boxed_func`). The latter two are the first by default.
        partition_fn (callable, optional): `default_partition`.
        decompositions (dict): as for `make_fx`.

    Graphs have no writes in place; arguments that are written get their values afterwards. Arguments of other forms are compiled again.

    Raises:
        NotImplementedError: another `partition_fn`, sizes that vary (`dynamic`), or what `make_fx` refuses.
    """
    _refuse(partition_fn)
    if dynamic:
        raise NotImplementedError(
            "aot_function: dynamic=True makes graphs for any sizes; expected False. Hint: torch.export"
        )
    settings = {
        "fw_compiler": fw_compiler, "bw_compiler": bw_compiler or fw_compiler, "decompositions": decompositions,
        "inference_compiler": inference_compiler or fw_compiler,
    }  # fmt: skip
    compiled: dict[Any, _Compiled] = {}

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        flat, spec = _pytree.tree_flatten((args, kwargs))

        def of_leaves(*leaves: Any) -> Any:
            args, kwargs = _pytree.tree_unflatten(list(leaves), spec)
            return fn(*args, **kwargs)

        key = (spec, is_grad_enabled(), *map(_form, flat))
        if key not in compiled:
            compiled[key] = _Compiled(of_leaves, flat, settings)
        return compiled[key](flat)

    return run


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """A module that has the parameters and buffers of another one, and calls what `aot_function` makes of it.

    Args:
        mod (Module): the module; its parameters are the first inputs of the graphs, then its buffers.
        args, kwargs: as for `aot_function`, after the function.
    """

    def call(named: dict[str, Any], args: Any, kwargs: Any) -> Any:
        return functional_call(mod, named, args, kwargs)

    compiled = aot_function(call, *args, **kwargs)

    class AOTModule(Module):
        """A module whose graphs are compiled."""

        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """What the module returns."""
            return compiled({**dict(mod.named_parameters()), **dict(mod.named_buffers())}, args, kwargs)

    return AOTModule()


def aot_module_simplified(
    mod: Module,
    args: Any,
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] | None = None,
    decompositions: dict[Any, Callable[..., Any]] | None = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """`forward` of a module of tensors, as `aot_module` compiles it."""
    compiled = aot_module(
        mod, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler=inference_compiler
    )

    def forward(*args: Any) -> Any:
        return compiled(*args)

    forward.named_parameters = mod.named_parameters  # type: ignore[attr-defined]
    forward.named_buffers = mod.named_buffers  # type: ignore[attr-defined]
    return forward


__getattr__ = getattr_of(__name__)
