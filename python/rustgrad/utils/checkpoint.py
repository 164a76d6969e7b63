"""`checkpoint`: a part of a model that saves only its inputs and is recomputed when backward needs the rest.

Saved tensors of the part are numbered instead of kept. The first one that backward needs makes the part run
again, from the same random state, and the tensors saved then are returned by number.
"""

from __future__ import annotations

import contextlib
import functools
import warnings

from .. import _C
from .._base import Tensor
from ..autograd.grad_mode import enable_grad, is_grad_enabled
from ..autograd.graph import saved_tensors_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]

_early_stop = True
_PASS_IT = (
    "{}: the use_reentrant parameter should be passed explicitly. In a future release, calling checkpoint without "
    "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current "
    "default behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
    "two variants."
)


class CheckpointError(RuntimeError):
    """The recomputation saved other tensors."""


class _Stop(Exception):
    """All needed tensors have been recomputed."""


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The default contexts of computation and recomputation: none."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether a recomputation stops once it has saved as many tensors as before (the default)."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


def _facts(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _Part:
    """A computed part, its saved tensors, and how to recompute it."""

    def __init__(self, function, args, kwargs, context, random_state, check, early_stop):
        self.run = functools.partial(function, *args, **kwargs)
        self.inputs = [(t, t._version) for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        self.context = context
        self.random_state = random_state
        self.check = check
        self.early_stop = early_stop
        self.facts = []
        self.values = {}

    def pack(self, tensor):
        self.facts.append(_facts(tensor))
        return len(self.facts) - 1

    def unpack(self, number):
        if number not in self.values:
            self.compute_again()
        # Each is needed once per pass; another pass recomputes the part.
        return self.values.pop(number)

    def compute_again(self):
        for tensor, version in self.inputs:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[{tensor.type()} {list(tensor.shape)}], an input of a checkpoint, is at version "
                    f"{tensor._version}; expected version {version} instead."
                )
        values = {}

        def pack(tensor):
            if len(values) == len(self.facts):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass, which saved {len(self.facts)}."
                )
            kept = values[len(values)] = tensor.detach()
            if self.early_stop and len(values) == len(self.facts):
                raise _Stop
            return kept

        with contextlib.suppress(_Stop), _random_state(self.random_state), enable_grad(), self.context:
            with saved_tensors_hooks(pack, lambda kept: kept):
                self.run()
        self._compare(values)
        self.values = values

    def _compare(self, values):
        if len(values) != len(self.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.facts)}\n"
                f"Number of tensors saved during recomputation: {len(values)}."
            )
        found = [(i, facts, _facts(values[i])) for i, facts in enumerate(self.facts)] if self.check else []
        wrong = "".join(
            f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
            for i, before, now in found
            if before != now
        )
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                f"the forward pass.\n{wrong}"
            )


@contextlib.contextmanager
def _random_state(state):
    """Sets a random state for a block and restores the current one afterwards; None changes nothing."""
    if state is None:
        yield
        return
    now = _C.get_rng_state()
    _C.set_rng_state(state)
    try:
        yield
    finally:
        _C.set_rng_state(now)


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, recomputing its intermediate results in backward instead of saving them.

    Without a function it returns a decorator.

    Args:
        use_reentrant (bool): should be passed; both values behave like False in PyTorch.
        preserve_rng_state (bool): whether the recomputation draws the same random numbers.
        context_fn (callable): returns two context managers, for the first computation and for each recomputation.
        determinism_check (str): "default" compares shapes, dtypes and devices of what is saved, "none" does not.
        debug (bool): not supported.
        early_stop (bool): whether the recomputation ends with the last saved tensor.

    Raises:
        CheckpointError: (in backward) the recomputation saved other tensors.
        RuntimeError: (in backward) an input was changed in place meanwhile.
    """
    options = {
        "use_reentrant": use_reentrant,
        "preserve_rng_state": preserve_rng_state,
        "context_fn": context_fn,
        "determinism_check": determinism_check,
        "debug": debug,
        "early_stop": early_stop,
    }
    if function is None:
        return lambda f: functools.wraps(f)(lambda *a, **k: checkpoint(f, *a, **options, **k))
    if use_reentrant is None:
        warnings.warn(_PASS_IT.format("torch.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if debug:
        raise NotImplementedError("checkpoint: debug=True is not supported; expected debug=False")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check must be one of ['default', 'none'], but got {determinism_check}")
    forward, again = context_fn()
    if not is_grad_enabled():
        with forward:
            return function(*args, **kwargs)
    state = _C.get_rng_state() if preserve_rng_state else None
    checked = determinism_check == "default"
    part = _Part(function, args, kwargs, again, state, checked, early_stop and _early_stop)
    with saved_tensors_hooks(part.pack, part.unpack), forward:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs modules in sequence, in `segments` parts of which all but the last are checkpointed.

    Args:
        functions (Sequential or list of callables).
        segments (int): number of parts.
        input: the input of the first.
        preserve_rng_state (bool): as in `checkpoint`.
    """
    if use_reentrant is None:
        warnings.warn(_PASS_IT.format("torch.utils.checkpoint.checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)
    size = len(functions) // segments

    def run(some, value):
        return functools.reduce(lambda v, f: f(v), some, value)

    for start in range(0, size * (segments - 1), size):
        part = functools.partial(run, functions[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(functions[size * (segments - 1) :], input)


def __dir__() -> list[str]:
    return __all__
